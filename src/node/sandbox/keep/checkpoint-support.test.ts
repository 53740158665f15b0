import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { slotOf } from '../../layout.ts';
import { allocatedBytes } from '../../disks/allocated-bytes.ts';
import { checkpointFailed } from '../../snapshot/criu.ts';
import type { RestoreHost } from '../../snapshot/restore.ts';
import { checkpointBytes, explainCheckpoint, explainRestore } from './checkpoint-support.ts';

test('a checkpoint may take all of a disk with too many files to find those without a name', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-checkpoint-'));
  try {
    const disk = join(folder, 'disk.img');
    writeFileSync(disk, Buffer.alloc(1 << 20, 1));
    const bytes = async (status: number, output: string) => {
      const host = { helper: { spawn: async () => ({ status, output }) } } as unknown as RestoreHost;
      const driver = { memoryUsed: () => 1000, processes: () => [1, 2] };
      const source = { slot: slotOf(0, 1), driver } as unknown as Parameters<typeof checkpointBytes>[1];
      return checkpointBytes(host, source, { disk });
    };
    expect(await bytes(0, '4096 0 0\n')).toBe(1000 + 4096);
    expect(await bytes(0, '4096 0 1\n')).toBe(1000 + allocatedBytes(disk));
    await expect(bytes(137, '')).rejects.toMatchObject({ code: 'unavailable' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const failed = (why: string, detail: string = checkpointFailed) =>
  new AtollError('unavailable', `the memory of the sandbox can’t be kept: ${why}`, { detail });

test('what CRIU can’t keep is the sandbox’s state, and what CRIU lacks is the machine’s', () => {
  expect(explainCheckpoint(failed('a socket of an unknown family'))).toMatchObject({ code: 'precondition' });
  expect(explainCheckpoint(failed('Can’t fork ns dumper: Resource temporarily unavailable'))).toMatchObject({
    code: 'unavailable',
    detail: 'sandbox_capacity_unavailable',
  });
  const other = failed('Resource temporarily unavailable', 'another');
  expect(explainCheckpoint(other)).toBe(other);
});

test('what CRIU can’t restore is the state of the volumes if there are some, and otherwise a fault', () => {
  const error = failed('Can’t open file data/log on restore: No such file or directory');
  const volumes = ['/data', '/srv'].map(path => ({ volumeId: path, path }));
  expect(explainRestore(error, volumes)).toMatchObject({
    code: 'conflict',
    detail: 'sandbox_volume_changed',
    message: `${error.message} (others may have changed what it has open in /data, /srv)`,
  });
  expect(explainRestore(error, [])).toBe(error);
  expect(explainRestore(failed('Can’t fork: Cannot allocate memory'), volumes)).toMatchObject({
    code: 'unavailable',
    detail: 'sandbox_capacity_unavailable',
  });
  const other = failed('wrong digest', 'snapshot_damaged');
  expect(explainRestore(other, volumes)).toBe(other);
});
