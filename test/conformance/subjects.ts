import { describe } from 'bun:test';
import { join } from 'node:path';
import { findRunsc } from '../../src/node/drivers/gvisor/find-runsc.ts';
import type { Limitation } from '../../src/node/drivers/gvisor/limitations.ts';
import { limitations } from '../../src/node/drivers/gvisor/limitations.ts';
import type { DriverName } from '../../src/protocol/driver.ts';
import { testUnless } from '../support/skip.ts';

/** A driver that must show the same behaviours. */
type Subject = { driver: DriverName; cannot(limitation: Limitation): boolean };

const runsc = findRunsc(join(import.meta.dir, '../../dist/runsc'));

/** Declares tests once for each driver. A driver that is unavailable on this machine is skipped, with the reason. */
export function describeDrivers(behaviours: (subject: Subject) => void): void {
  describe('on crun', () => behaviours({ driver: 'crun', cannot: () => false }));
  if (runsc.found)
    describe('on gVisor', () => behaviours({ driver: 'gvisor', cannot: limitation => limitation in limitations }));
  else testUnless(runsc.reason)('all of this on gVisor', () => {});
}
