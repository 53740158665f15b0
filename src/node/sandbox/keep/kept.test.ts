import { expect, test } from 'bun:test';
import type { Disks } from '../../disks/disks.ts';
import type { Helper } from '../../native/helper.ts';
import type { ProgramKind } from '../../native/program-places.ts';
import type { Records } from '../records/record-store.ts';
import { repairDisk } from './disk.ts';
import { createKeptFiles } from './kept.ts';
import { silentLog } from '../../../base/telemetry/log.ts';

test('what looks through the disks of others has no place of what makes disks', async () => {
  const kinds: (ProgramKind | undefined)[] = [];
  const helper = {
    spawn: async (_: string[], { kind }: { kind?: ProgramKind }) => (kinds.push(kind), { status: 0, output: '' }),
  } as unknown as Helper;
  const records = { keptOf: () => '/kept' } as unknown as Records;
  const kept = createKeptFiles({ helper, helperBinary: 'helper', disks: {} as unknown as Disks, records });
  await kept.verify('one');
  await repairDisk({ helper, log: silentLog }, '/disk');
  expect(kinds).toEqual(['check', 'check']);
});
