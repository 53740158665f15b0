import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog } from '../../base/telemetry/log.ts';
import { slotOf } from '../layout.ts';
import { readSamples } from './sample-file.ts';
import { samplesPath, startSampler, type SamplerParts } from './sampler.ts';

const MiB = 1024 ** 2;
let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'atoll-sampler-'));
  for (const name of ['metrics', 'mounts']) mkdirSync(join(dir, name));
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
  rmSync(dir, { recursive: true, force: true });
});

type Sandbox = ReturnType<SamplerParts['sandboxes']['running']>[number];

/** A sandbox in a slot whose disk is there, with two processors and 512 MiB. */
function sandbox(number: number, executionId = 'first'): Sandbox {
  mkdirSync(join(dir, 'mounts', `s${number}`), { recursive: true });
  const record = { executionId, resources: { cpuCount: 2, memoryMiB: 512, diskMiB: 1024 } };
  const driver = { cgroupPath: ({ name }: { name: string }) => name };
  const processes = { slot: slotOf(0, number), driver };
  return { sandboxId: `sandbox-${number}`, record, processes } as unknown as Sandbox;
}

/** A sampler of these sandboxes, and what their control groups report: `reads` counts how often they were read. */
function sampler(running: Sandbox[], recordsMax = 100) {
  const group = { cpuUs: 0, memoryUsed: 96 * MiB, cacheBytes: 32 * MiB };
  const reads = { cpuUs: 0, cacheBytes: 0 };
  const logged: string[] = [];
  const layout = { metrics: join(dir, 'metrics'), mounts: join(dir, 'mounts') };
  const started = startSampler(
    {
      sandboxes: { running: () => running },
      cgroups: {
        cpuUs: () => (reads.cpuUs++, group.cpuUs),
        memoryUsed: () => group.memoryUsed,
        cacheBytes: () => (reads.cacheBytes++, group.cacheBytes),
      },
      layout,
      helper: { mountsPid: process.pid },
      log: createLog('debug', line => logged.push(line)),
    },
    recordsMax,
  );
  return { ...started, group, reads, logged, samples: (id: string) => readSamples(samplesPath(layout, id)) };
}

test('the first sample comes a second after a sandbox was seen, and then one every five', () => {
  using node = disposable(sampler([sandbox(1)]));
  const before = statfsSync(dir);
  jest.advanceTimersByTime(250);
  expect(node.latest('sandbox-1')).toBeUndefined();
  node.group.cpuUs = 500_000; // half a second of two processors' one
  jest.advanceTimersByTime(1000);
  expect(node.latest('sandbox-1')).toEqual({
    atSeconds: Math.floor(Date.now() / 1000),
    cpuCount: 2,
    cpuUsedPct: 25,
    memUsed: 64 * MiB,
    memTotal: 512 * MiB,
    memCache: 32 * MiB,
    diskUsed: expect.any(Number) as number,
    diskTotal: before.blocks * before.bsize,
  });
  const used = (before.blocks - before.bfree) * before.bsize;
  expect(Math.abs((node.latest('sandbox-1')?.diskUsed ?? 0) - used)).toBeLessThan(used / 2);
  expect(node.samples('sandbox-1')).toHaveLength(1);
  jest.advanceTimersByTime(4750);
  expect(node.samples('sandbox-1')).toHaveLength(1);
  jest.advanceTimersByTime(250);
  expect(node.samples('sandbox-1')).toHaveLength(2);
  expect(node.latest('sandbox-1')?.cpuUsedPct).toBe(0);
  expect(node.samples('somebody-else')).toEqual([]);
});

test('a share is of what the sandbox may use, and stays within it', () => {
  using node = disposable(sampler([sandbox(1)]));
  jest.advanceTimersByTime(250);
  node.group.cpuUs = 9e6;
  jest.advanceTimersByTime(1000);
  expect(node.latest('sandbox-1')?.cpuUsedPct).toBe(100);
  node.group.cpuUs = 0; // its counter has begun anew
  jest.advanceTimersByTime(5000);
  expect(node.latest('sandbox-1')?.cpuUsedPct).toBe(0);
  node.group.cpuUs = 1_234_567;
  jest.advanceTimersByTime(5000);
  expect(node.latest('sandbox-1')?.cpuUsedPct).toBe(12.35);
});

test('memory and disk of one that does nothing are not asked for again', () => {
  using node = disposable(sampler([sandbox(1)]));
  jest.advanceTimersByTime(1250);
  const first = node.latest('sandbox-1');
  expect(node.reads.cacheBytes).toBe(1);
  jest.advanceTimersByTime(5000);
  expect(node.reads.cacheBytes).toBe(1);
  expect(node.latest('sandbox-1')).toEqual({ ...first!, atSeconds: first!.atSeconds + 5 });
  node.group.memoryUsed = 16 * MiB; // the kernel took some away
  jest.advanceTimersByTime(5000);
  expect(node.reads.cacheBytes).toBe(2);
  expect(node.latest('sandbox-1')).toMatchObject({ memUsed: 0, memCache: 16 * MiB });
  node.group.cpuUs = 1;
  jest.advanceTimersByTime(5000);
  expect(node.reads.cacheBytes).toBe(3);
});

test('another execution of a sandbox begins anew, and one that is gone is forgotten', () => {
  const running = [sandbox(1), sandbox(2)];
  using node = disposable(sampler(running));
  jest.advanceTimersByTime(1250);
  expect(node.latest('sandbox-2')).toBeDefined();
  running.splice(0, 2, sandbox(1, 'second'));
  jest.advanceTimersByTime(250);
  expect(['sandbox-1', 'sandbox-2'].map(node.latest)).toEqual([undefined, undefined]);
  jest.advanceTimersByTime(1000);
  expect(node.latest('sandbox-1')).toBeDefined();
  expect(node.samples('sandbox-1')).toHaveLength(2);
  expect(node.samples('sandbox-2')).toHaveLength(1);
});

test('if many are due at once, each look samples some, and soon all are sampled', () => {
  const running = Array.from({ length: 160 }, (_, number) => sandbox(number));
  using node = disposable(sampler(running));
  const sampled = () => running.filter(({ sandboxId }) => node.latest(sandboxId)).length;
  jest.advanceTimersByTime(1250);
  expect(sampled()).toBe(10); // a sixteenth
  jest.advanceTimersByTime(250);
  expect(sampled()).toBe(20);
  jest.advanceTimersByTime(14 * 250);
  expect(sampled()).toBe(160);
  running.splice(20);
  jest.advanceTimersByTime(250);
  expect(node.reads.cpuUs).toBe(160 + 160); // none is due before its five seconds have passed
});

test('if a few are due, each look samples eight', () => {
  const running = Array.from({ length: 20 }, (_, number) => sandbox(number));
  using node = disposable(sampler(running));
  jest.advanceTimersByTime(1250);
  expect(running.filter(({ sandboxId }) => node.latest(sandboxId))).toHaveLength(8);
});

test('a sample that can’t be recorded is reported once a minute and does not stop the others', () => {
  using node = disposable(sampler([sandbox(1), sandbox(2)]));
  jest.advanceTimersByTime(250);
  mkdirSync(join(dir, 'metrics', 'sandbox-1')); // no file can be there
  jest.advanceTimersByTime(1000);
  expect(node.samples('sandbox-2')).toHaveLength(1);
  expect(node.logged).toHaveLength(1);
  expect(JSON.parse(node.logged[0] ?? '')).toMatchObject({
    level: 'warn',
    sandboxId: 'sandbox-1',
    error: expect.stringContaining('EISDIR') as string,
  });
  jest.advanceTimersByTime(55_000);
  expect(node.logged).toHaveLength(1);
  jest.advanceTimersByTime(5000);
  expect(node.logged).toHaveLength(2);
});

test('as many samples are kept as was asked for, and none is taken after the end', () => {
  const node = sampler([sandbox(1)], 2);
  jest.advanceTimersByTime(1250 + 3 * 5000);
  const kept = node.samples('sandbox-1');
  expect(kept).toHaveLength(4);
  jest.advanceTimersByTime(5000);
  expect(node.samples('sandbox-1')).toHaveLength(3);
  node.stop();
  jest.advanceTimersByTime(60_000);
  expect(node.samples('sandbox-1')).toHaveLength(3);
});

const disposable = <T extends { stop(): void }>(it: T) => ({ ...it, [Symbol.dispose]: () => it.stop() });
