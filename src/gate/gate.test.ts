import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../base/error.ts';
import { createLog } from '../base/telemetry/log.ts';
import type { Beat } from '../protocol/cluster.ts';
import type { ExecutionRef, NodeInfo } from '../protocol/node.ts';
import { Gate } from './gate.ts';
import { gateLease, hostUptimeMs, openGateMemory, type GateMemory } from './gate-memory.ts';

type Heard = ReturnType<GateMemory['recall']>;

/** A gate over a node that only records its calls, with a clock that the test sets. */
function scene({ refusesPauses = false } = {}) {
  const [calls, said]: [string[], string[]] = [[], []];
  const it = { nowMs: 1_000, running: ['a', 'b'], calls, said, heard: undefined as Heard };
  const end = (target: ExecutionRef, what: string) => {
    it.calls.push(`${what} ${target.sandboxId}`);
    it.running = it.running.filter(id => id !== target.sandboxId);
  };
  const ref = (id: string) => ({ sandboxId: id, executionId: `${id}1` });
  const begin = () =>
    new Gate({
      node: {
        info: async () => ({ sandboxCount: it.running.length }) as NodeInfo,
        list: async () =>
          it.running.map(id => ({
            ...ref(id),
            startedAtMs: 0,
            resources: { cpuCount: 1, memoryMiB: 1, diskMiB: 1 },
            diskFailed: false,
          })),
        memoryAbility: async () => ({ kept: true }),
        kill: async target => end(target, 'kill'),
        async pause(target, { memory }) {
          if (refusesPauses) throw new AtollError('internal', 'refused');
          end(target, memory ? 'pause' : 'pause files of');
          return { ...target, kept: memory ? 'memory' : 'filesystem', pausedAtMs: 0 };
        },
      },
      cpuOvercommit: 4,
      bootId: 'boot',
      release: '1',
      log: createLog('warn', line => void it.said.push((JSON.parse(line) as { message: string }).message)),
      memory: { recall: () => it.heard, keep: heard => void (it.heard = heard) },
      nowMs: () => it.nowMs,
    });
  let gate = begin();
  const restart = () => void (gate = begin());
  const beat = (change: Partial<Beat> = {}) =>
    gate.beat({ lease: null, isolationSeconds: 60, pauseFirst: false, ends: [], ...change });
  const leased = async (ms: number, change: Partial<Beat> = {}) => {
    const { epoch, nowMs } = await beat();
    return beat({ lease: { epoch, untilMs: nowMs + ms }, ...change });
  };
  const at = async (nowMs: number) => {
    it.nowMs = nowMs;
    await gate.tick();
    await gate.settled();
  };
  /** Starts something as soon as the gate allows it. */
  const start = (work = async () => {}) => gate.underLease(work);
  return { it, gate, beat, leased, at, ref, restart, start };
}

test('a node takes work while it has a lease, and serves on without one', async () => {
  const { it, leased, at, start } = scene();
  await expect(start()).rejects.toThrow('out of touch');
  await leased(10_000);
  await start();
  await at(11_000);
  await expect(start()).rejects.toThrow('out of touch');
  await at(70_999);
  expect(it.calls).toEqual([]);
});

test('a node that was cut off for long enough pauses all sandboxes, once', async () => {
  const { it, leased, at } = scene();
  await leased(10_000);
  await at(71_000);
  expect(it.calls.toSorted()).toEqual(['pause a', 'pause b']);
  await at(90_000);
  expect(it.calls).toHaveLength(2);
});

test('a machine that control does not talk to logs so once, and when that is over', async () => {
  const { it, beat, leased, at } = scene();
  it.running = [];
  await at(30_999);
  expect(it.said).toEqual([]);
  await at(31_000);
  await at(90_000);
  expect(it.said).toEqual([expect.stringContaining('joins anew by a token')]);
  await beat();
  await leased(10_000);
  await at(119_999);
  expect(it.said.slice(1)).toEqual(['control speaks with this machine again']);
  await at(120_000);
  expect(it.said).toHaveLength(3);
});

test('a node that control has never reached serves for a minute', async () => {
  const { it, at } = scene();
  await at(60_999);
  expect(it.calls).toEqual([]);
  await at(61_000);
  expect(it.calls.toSorted()).toEqual(['pause a', 'pause b']);
});

test('while all are being paused, none is paused a second time', async () => {
  const { it, gate, leased } = scene();
  await leased(10_000);
  it.nowMs = 71_000;
  await Promise.all([gate.tick(), gate.tick()]);
  await gate.settled();
  expect(it.calls.toSorted()).toEqual(['pause a', 'pause b']);
});

test('a start that began before and finishes after all was paused is paused too', async () => {
  const { it, gate, beat, leased, at } = scene();
  await leased(10_000);
  await at(71_000);
  it.running = ['late'];
  await at(71_250);
  expect(it.calls).toContain('pause late');
  it.running = ['later'];
  await beat({ pauseFirst: true });
  await gate.settled();
  expect(it.calls).toContain('pause later');
});

test('a lease of another process of the gate does not count', async () => {
  const { beat, start } = scene();
  await beat({ lease: { epoch: 'another', untilMs: 1e9 } });
  await expect(start()).rejects.toThrow('out of touch');
});

test('sandboxes whose time is over while control is away end as they were meant to', async () => {
  const { it, leased, at, ref } = scene();
  const ends: Beat['ends'] = [
    { ...ref('a'), inMs: 20_000, then: 'kill', memory: false },
    { ...ref('b'), inMs: 30_000, then: 'pause', memory: false },
  ];
  await leased(10_000, { ends });
  await at(20_999);
  expect(it.calls).toEqual([]);
  await at(21_000);
  expect(it.calls).toEqual(['kill a']);
  await at(31_000);
  expect(it.calls).toEqual(['kill a', 'pause files of b']);
});

test('while control is there, the end of a sandbox is its business', async () => {
  const { it, leased, at, ref } = scene();
  await leased(10_000, { ends: [{ ...ref('a'), inMs: 1_000, then: 'kill', memory: false }] });
  await at(5_000);
  expect(it.calls).toEqual([]);
});

test('sandboxes that control counts as paused are paused before anything else', async () => {
  const { it, gate, beat, leased, start } = scene();
  await leased(10_000);
  expect(await beat({ pauseFirst: true })).toMatchObject({ isPausing: true });
  await expect(start()).rejects.toThrow('out of touch');
  await gate.settled();
  expect(it.calls.toSorted()).toEqual(['pause a', 'pause b']);
  expect(await beat({ pauseFirst: true })).toMatchObject({ isPausing: false, info: { sandboxCount: 0 } });
});

test('a node whose sandboxes count as paused has no lease by a clock that stood still with the machine', async () => {
  const { gate, beat, leased, start } = scene();
  await leased(10_000);
  await beat({ pauseFirst: true });
  await gate.settled();
  await expect(start()).rejects.toThrow('out of touch');
  await leased(10_000);
  await start();
});

test('sandboxes count as paused only when no earlier start is under way', async () => {
  const { beat, gate, leased, start } = scene();
  await leased(10_000);
  const { promise: begun, resolve: end } = Promise.withResolvers<void>();
  const starting = start(() => begun);
  expect(await beat()).toMatchObject({ isPausing: false });
  await beat({ pauseFirst: true });
  await gate.settled();
  expect(await beat({ pauseFirst: true })).toMatchObject({ isPausing: true, info: { sandboxCount: 0 } });
  end();
  await starting;
  expect(await beat({ pauseFirst: true })).toMatchObject({ isPausing: false });
});

test('a sandbox that can not be paused at all does not run on', async () => {
  const { it, leased, at } = scene({ refusesPauses: true });
  await leased(10_000);
  await at(71_000);
  expect(it.calls.toSorted()).toEqual(['kill a', 'kill b']);
});

test('a new process without control counts from the last word of control, and ends what is due', async () => {
  const { it, leased, at, ref, restart } = scene();
  await leased(10_000, { ends: [{ ...ref('a'), inMs: 30_000, then: 'kill', memory: false }] });
  it.nowMs = 20_000;
  restart();
  await at(30_999);
  expect(it.calls).toEqual([]);
  await at(31_000);
  expect(it.calls).toEqual(['kill a']);
  await at(70_999);
  restart();
  expect(it.calls).toEqual(['kill a']);
  await at(71_000);
  expect(it.calls).toEqual(['kill a', 'pause b']);
});

test('a new process takes no work on the lease of the one before', async () => {
  const { it, leased, restart, start } = scene();
  await leased(10_000);
  await start();
  it.nowMs = 2_000;
  restart();
  await expect(start()).rejects.toThrow('out of touch');
  await leased(10_000);
  await start();
});

test('a node reads from the file of its gate whether it has a lease', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-gate-'));
  try {
    const path = join(folder, 'heard.json');
    const lease = gateLease(path);
    expect(lease.require).toThrow('out of touch');
    using memory = openGateMemory(path);
    expect(lease.require).toThrow('out of touch');
    memory.keep({ leaseUntilMs: hostUptimeMs() + 60_000, isolationMs: 2, ends: [] });
    expect(lease.require).not.toThrow();
    memory.keep({ leaseUntilMs: hostUptimeMs() - 10, isolationMs: 2, ends: [] });
    expect(lease.require).toThrow('out of touch');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('what a gate has heard is in its file for the next process, even when it gets shorter', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-gate-'));
  try {
    const path = join(folder, 'heard.json');
    using first = openGateMemory(path);
    expect(first.recall()).toBeUndefined();
    const end = { sandboxId: 's', executionId: 'e', inMs: 1, then: 'kill', memory: false, atMs: 7 } as const;
    first.keep({ leaseUntilMs: 1, isolationMs: 2, ends: [end] });
    using second = openGateMemory(path);
    expect(second.recall()).toEqual({ leaseUntilMs: 1, isolationMs: 2, ends: [end] });
    second.keep({ leaseUntilMs: 3, isolationMs: 2, ends: [] });
    expect(first.recall()).toEqual({ leaseUntilMs: 3, isolationMs: 2, ends: [] });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a gate without room for its file logs that, and half a text counts as nothing heard', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-gate-'));
  try {
    const module = JSON.stringify(join(import.meta.dir, 'gate-memory.ts'));
    const program = `const ends = [{ sandboxId: 'x'.repeat(100_000) }];
      (await import(${module})).openGateMemory('heard.json').keep({ leaseUntilMs: 1, isolationMs: 2, ends });`;
    const small = 'mount -t tmpfs -o size=64k none "$0" && cd "$0" && exec "$@"';
    const limited = ['unshare', '--mount', 'sh', '-c', small, folder, process.execPath, '-e', program];
    expect(Bun.spawnSync(limited, { stderr: 'pipe' }).stderr.toString()).toContain('ENOSPC');
    // A process that is killed while it writes leaves the rest of the earlier text.
    const path = join(folder, 'heard.json');
    writeFileSync(path, '{"leaseUntilMs":1,"isolationMs":60000,"en0000,"ends":[]}\n');
    using memory = openGateMemory(path);
    expect(memory.recall()).toBeUndefined();
    expect(gateLease(path).require).toThrow('out of touch');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
