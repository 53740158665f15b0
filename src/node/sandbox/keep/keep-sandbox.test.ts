import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { silentLog } from '../../../base/telemetry/log.ts';
import { slotOf } from '../../layout.ts';
import type { RunningRecord, SandboxRecord } from '../records/record.ts';
import { keepSandbox, type KeepSource } from './keep-sandbox.ts';

test('a sandbox that could not be recorded as paused with its files is recorded as running', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-keep-'));
  writeFileSync(join(directory, 'disk.img'), '');
  const steps: string[] = [];
  const record = { sandboxId: 'one', state: 'running', volumes: [], image: { layers: [] } } as unknown as RunningRecord;
  const parts = {
    layout: { mounts: '/nowhere' },
    helper: { mountsPid: process.pid, spawn: async () => ({ status: 0, output: '' }) },
    volumes: { sync: async () => {} },
    space: { freeBytes: () => 1024 ** 4 },
    records: {
      diskOf: () => join(directory, 'disk.img'),
      async write({ state }: SandboxRecord) {
        steps.push(state);
        // It has its name, and its folder can't be written out.
        if (state === 'paused') throw new Error('the disk fails');
      },
    },
    log: silentLog,
  } as unknown as Parameters<typeof keepSandbox>[0];
  const driver = { freeze: async () => void steps.push('freeze'), thaw: () => void steps.push('thaw') };
  const source = { record, processes: { slot: slotOf(0, 1), driver } } as unknown as KeepSource;
  try {
    const kept = keepSandbox(parts, source, { memory: false, agentUnresponsive: false });
    await expect(kept).rejects.toThrow('the disk fails');
    expect(steps).toEqual(['freeze', 'paused', 'running', 'thaw']);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
