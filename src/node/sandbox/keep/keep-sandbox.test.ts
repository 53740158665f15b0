import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { silentLog } from '../../../base/telemetry/log.ts';
import { slotOf } from '../../layout.ts';
import { sandboxEnded } from '../../snapshot/criu.ts';
import { Reservations } from '../../space/reservations.ts';
import type { RunningRecord, SandboxRecord } from '../records/record.ts';
import { keepSandbox, type KeepSource } from './keep-sandbox.ts';

/** Finds no files without a name. */
const lookingHelper = { spawn: async () => ({ status: 0, output: '0 0 0' }) };

test('a sandbox that could not be recorded as paused with its files is recorded as running', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-keep-'));
  writeFileSync(join(directory, 'disk.img'), '');
  const steps: string[] = [];
  const record = { sandboxId: 'one', state: 'running', volumes: [], image: { layers: [] } } as unknown as RunningRecord;
  const parts = {
    layout: { mounts: '/nowhere' },
    helper: { mountsPid: process.pid, spawn: async () => ({ status: 0, output: '' }) },
    volumes: { sync: async () => {} },
    space: { reserve: () => new Reservations().add(0) },
    records: {
      diskOf: () => join(directory, 'disk.img'),
      async write({ state }: SandboxRecord) {
        steps.push(state);
        // The record has its name, but its folder can't be written out.
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

test('a pause that there is no room for leaves the sandbox running, and none takes the room of another', async () => {
  const reservations = new Reservations();
  const asked: unknown[] = [];
  const space = {
    reserve(_what: string, bytes: number, keptBackBytes: number) {
      asked.push([bytes, keptBackBytes]);
      if (reservations.bytes > 0) throw new AtollError('no_space', 'no room');
      return reservations.add(bytes);
    },
  };
  const parts = {
    space,
    layout: { mounts: '/nowhere' },
    layers: { mount: () => Promise.reject(new AtollError('precondition', 'it fails here')) },
    records: { diskOf: () => '/nowhere', keptOf: () => '/nowhere' },
    checkpoints: { supported: true, host: { helper: lookingHelper } },
  } as unknown as Parameters<typeof keepSandbox>[0];
  const driver = { memoryUsed: () => 1000, processes: () => [], capabilities: { withoutCheckpoints: null } };
  const record = { volumes: [], image: { layers: ['one'] } };
  const source = { record, processes: { slot: slotOf(0, 1), driver } } as unknown as KeepSource;
  const keep = () => keepSandbox(parts, source, { memory: true, agentUnresponsive: false });
  const outcomes = await Promise.allSettled([keep(), keep()]);
  expect(outcomes).toMatchObject([{ reason: { code: 'precondition' } }, { reason: { code: 'no_space' } }]);
  expect(asked).toEqual(Array.from({ length: 2 }, () => [1000, 256 * 1024 ** 2]));
  expect(reservations.bytes).toBe(0);
});

test('the files and the volumes of a sandbox that ended in its pause are written out before it is paused', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-keep-'));
  writeFileSync(join(directory, 'disk.img'), '');
  const steps: string[] = [];
  const parts = {
    layout: { mounts: '/nowhere' },
    helper: { mountsPid: process.pid, spawn: async () => (steps.push('disk'), { status: 0, output: '' }) },
    layers: { mount: async () => '/layer' },
    volumes: { sync: async () => void steps.push('volumes') },
    space: { reserve: () => new Reservations().add(0) },
    checkpoints: { supported: true, host: { runDir: directory, helper: lookingHelper } },
    records: {
      keptOf: () => directory,
      diskOf: () => join(directory, 'disk.img'),
      write: async ({ state }: SandboxRecord) => void steps.push(state),
    },
    frozenMs: 0,
    log: silentLog,
  } as unknown as Parameters<typeof keepSandbox>[0];
  const record = { sandboxId: 'one', state: 'running', volumes: [], image: { layers: [] } } as unknown as RunningRecord;
  const driver = {
    capabilities: { withoutCheckpoints: null },
    memoryUsed: () => 0,
    processes: () => [],
    freeze: () => Promise.reject(new AtollError('unavailable', 'it has ended', { detail: sandboxEnded })),
    thaw() {},
  };
  const processes = { slot: slotOf(0, 1), driver, pid: process.pid, ended: Promise.resolve() };
  try {
    const source = { record, processes } as unknown as KeepSource;
    const kept = await keepSandbox(parts, source, { memory: true, agentUnresponsive: false });
    expect(kept).toMatchObject({ kept: 'filesystem', frozen: null });
    expect(steps).toEqual(['disk', 'volumes', 'paused']);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
