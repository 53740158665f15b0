import { expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { layoutOf, slotOf } from '../../layout.ts';
import type { DriverHost } from '../factory.ts';
import { crunFactory } from './driver.ts';

const slot = slotOf(0, 1);
const resources = { cpuCount: 1, memoryMiB: 512, diskMiB: 512 };

test.each([
  // crun 1.8 succeeds silently if it can't fork.
  [0, '', 'unavailable', 'it has left no process'],
  [1, 'clone: Resource temporarily unavailable\n', 'unavailable', 'clone: Resource temporarily unavailable'],
  [1, 'mount: Permission denied', 'internal', 'mount: Permission denied'],
  [3, '', 'internal', 'status 3'],
] as const)(
  'a start of which crun makes nothing (status %i, %p) leaves nothing, and says why',
  async (status, output, code, why) => {
    const folder = mkdtempSync(join(tmpdir(), 'atoll-crun-'));
    try {
      const layout = layoutOf(join(folder, 'data'), join(folder, 'run'), 0);
      const removed: string[] = [];
      const driver = crunFactory.create({
        layout,
        hostname: 'sandbox',
        helperBinary: join(import.meta.dir, '../../../../dist/helper'),
        helper: { call: async () => {}, start: async () => ({ status, output, closed: Promise.resolve() }) },
        cgroups: {
          makeParent() {},
          make: () => [],
          kill() {},
          hasten() {},
          isEmpty: () => true,
          remove: async (path: string) => void removed.push(path),
        },
      } as unknown as DriverHost);
      await expect(driver.start(slot, { controlToken: 'x', bootId: 'y', resources, root: null })).rejects.toMatchObject(
        { code, message: `crun could not start a sandbox: ${why}` },
      );
      expect(removed).toEqual(['/atoll0/s1']);
      expect(readdirSync(layout.bundles)).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
