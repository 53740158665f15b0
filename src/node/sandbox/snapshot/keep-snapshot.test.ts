import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { slotOf } from '../../layout.ts';
import { keepSnapshot, type SnapshotParts, type SnapshotSource } from './keep-snapshot.ts';

test('a snapshot that there is no room for is refused before the sandbox is held and anything is written', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-snapshot-'));
  const disk = join(directory, 'disk.img');
  writeFileSync(disk, Buffer.alloc(1 << 20, 1));
  const asked: number[] = [];
  const parts = {
    layout: { snapshots: join(directory, 'snapshots') },
    checkpoints: { supported: true, host: { helper: { spawn: async () => ({ status: 0, output: '0 0 0' }) } } },
    space: {
      reserve(_what: string, bytes: number) {
        asked.push(bytes);
        throw new AtollError('no_space', 'no room');
      },
    },
  } as unknown as SnapshotParts;
  const driver = { capabilities: { withoutCheckpoints: null }, memoryUsed: () => 1 << 30, processes: () => [] };
  const processes = { slot: slotOf(0, 1), driver, pid: 1 };
  const source = { processes, disk, layers: [], facts: {}, volumes: [] } as unknown as SnapshotSource;
  try {
    for (const memory of [true, false]) {
      const kept = keepSnapshot(parts, { snapshotId: newUuid(), memory }, source);
      await expect(kept).rejects.toMatchObject({ code: 'no_space' });
    }
    // The memory, and three times the disk: a copy, a copy for those that begin with it, and a layer.
    expect(asked[0]).toBeWithin((1 << 30) + (3 << 20), (1 << 30) + (4 << 20));
    expect(asked[1]).toBeWithin(2 << 20, 3 << 20);
    expect(readdirSync(parts.layout.snapshots)).toEqual([]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
