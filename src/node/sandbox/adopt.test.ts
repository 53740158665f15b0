import { afterEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog } from '../../base/telemetry/log.ts';
import type { SandboxIncident } from '../../protocol/node.ts';
import { layoutOf } from '../layout.ts';
import { adoptSandboxes } from './adopt.ts';
import { pausedRecord, type PausedRecord, type RunningRecord } from './records/record.ts';
import { createRecords } from './records/record-store.ts';
import { isAlive, placeOf } from './records/start-ticks.ts';
import { createCleanups } from './slot/cleanups.ts';
import { createSlots } from './slot/slots.ts';
import { Sandboxes } from './state/sandboxes.ts';

/** A number that no interface of this machine is named after. */
const installation = 9_999;
const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

type Parts = Parameters<typeof adoptSandboxes>[0];

/** A node before it has looked at what is there; `happened` records what it does about it, in order. */
function node({
  leftovers = [] as number[],
  fails = [] as string[],
  hasChecksums = false,
  isDamaged = false,
  onStep = (_: string) => {},
  /** What taking a sandbox over, or removing a leftover, waits for. */
  meanwhile = async (_: string) => {},
} = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-adopt-'));
  cleanUps.push(() => rmSync(folder, { recursive: true }));
  const layout = layoutOf(join(folder, 'data'), join(folder, 'run'), installation);
  for (const path of [layout.run, layout.disks]) mkdirSync(path, { recursive: true });
  const [happened, logged]: [string[], string[]] = [[], []];
  const log = createLog('debug', line => logged.push(`${JSON.parse(line).level} ${JSON.parse(line).message}`));
  const failing = [...fails];
  const step = (name: string) => {
    happened.push(name);
    onStep(name);
    const at = failing.indexOf(name);
    if (at >= 0) throw new Error(`${failing.splice(at, 1)} failed`);
  };
  const records = createRecords(layout.sandboxes, { key: new Uint8Array(32), isNew: false });
  const slots = createSlots(installation);
  const sandboxes = new Sandboxes();
  const frozenSlots = new Set<number>();
  const dying = Promise.withResolvers<void>();
  const driver = {
    thaw: ({ name }: { name: string }) => step(`thaw ${name}`),
    isFrozen: ({ number }: { number: number }) => frozenSlots.has(number),
    outOfMemoryKills: () => 0,
  };
  const parts = {
    ...{ layout, log, records, slots, sandboxes, helper: {}, helperBinary: '', frozenMs: 0 },
    drivers: { of: () => driver, keepersOf: () => [driver], leftovers: () => leftovers },
    disks: { open: async () => step('open disk') },
    volumes: { hold: async (_: unknown, ids: string[]) => (step(`hold ${ids.join()}`), ids) },
    egress: { adopt: ({ sandboxId }: { sandboxId: string }) => step(`policy of ${sandboxId}`) },
    kept: {
      hasChecksums: () => hasChecksums,
      writeLateChecksums: async (id: string) => step(`checksums of ${id}`),
      judgeMemory: async (judged: PausedRecord) => (isDamaged ? { ...judged, kept: 'filesystem' as const } : judged),
    },
    slotHost: {
      async release(slot: { name: string; number: number }) {
        step(`release ${slot.name}`);
        await meanwhile('release');
        slots.give({ ...slot } as Parameters<typeof slots.give>[0]);
      },
    },
    cleanups: createCleanups(log),
    whyMemoryLost: async () => undefined,
    processControl: {
      async watch(of: unknown, slot: { name: string }, pid: number) {
        step(`watch ${slot.name}`);
        await meanwhile('watch');
        const namespace = { close: () => happened.push(`close ${slot.name}`) };
        return { slot, driver: of, pid, namespace, ended: dying.promise };
      },
      end: async ({ slot }: { slot: { name: string } }) => step(`end ${slot.name}`),
    },
    incidents: { report: ({ sandboxId, reason }: SandboxIncident) => step(`${sandboxId} ${reason}`) },
    logs: {
      ...{ write: () => {}, catchUp: async () => {}, leave: async () => {} },
      follow: ({ sandboxId }: { sandboxId: string }) => step(`follow ${sandboxId}`),
    },
  };
  cleanUps.push(() => parts.cleanups.stop());
  return {
    ...{ layout, records, slots, sandboxes, happened, logged, frozenSlots, die: dying.resolve },
    adopt: () => adoptSandboxes(parts as unknown as Parts),
    kinds: () => Object.fromEntries([...sandboxes.all()].map(({ sandboxId, kind }) => [sandboxId, kind])),
    async record(record: RunningRecord | PausedRecord, { disk = true } = {}) {
      records.keptOf(record.sandboxId);
      if (disk) writeFileSync(records.diskOf(record.sandboxId), '');
      await records.write(record);
    },
    recorded: (id: string) => records.list().find(({ sandboxId }) => sandboxId === id)?.record,
  };
}

/** The processes of a sandbox, as far as its record describes them. */
function processesIn(slot: number) {
  const child = Bun.spawn(['sleep', '1000']);
  cleanUps.push(() => (child.kill(9), child.exited));
  return placeOf({ number: slot }, child.pid);
}
const gone = (slot: number) => ({ slot, pid: process.pid, startTicks: 1 });

const running = (sandboxId: string, place: ReturnType<typeof gone>): RunningRecord => ({
  ...{ state: 'running', sandboxId, executionId: `${sandboxId}-1`, controlToken: '', bootId: '', agentDir: '/a/1' },
  resources: { cpuCount: 1, memoryMiB: 1, diskMiB: 1 },
  network: { internetAccess: true },
  image: { templateId: 't', buildId: 'b', layers: [], defaultUser: 'user', defaultWorkdir: '', buildEnv: {} },
  ...{ driver: 'crun', startedAtMs: 0, volumes: [], resumedFrom: null },
  ...place,
});

const until = async (holds: () => boolean) => {
  while (!holds()) await Bun.sleep(5);
};

test('a running sandbox is taken over, and keeps its slot', async () => {
  const { adopt, record, recorded, records, kinds, happened, slots, sandboxes } = node({ leftovers: [3, 7] });
  await record(running('a', processesIn(3)));
  // This is what a snapshot that was cut off leaves.
  mkdirSync(join(records.keptOf('a'), 'memory.partial'));
  expect(await adopt()).toEqual({ adopted: 1, removed: 1, paused: 0 });
  expect(kinds()).toEqual({ a: 'running' });
  expect(happened).toEqual(['watch s3', 'open disk', 'thaw s3', 'policy of a', 'follow a', 'release s7']);
  expect(slots.used()).toBe(1);
  expect(() => slots.occupy(3)).toThrow('used twice');
  expect(existsSync(join(records.keptOf('a'), 'memory.partial'))).toBeFalse();
  // Its agent is in the current data directory.
  expect(recorded('a')).toMatchObject({ state: 'running', agentDir: expect.stringContaining('/data/node/agents/1') });
  expect(sandboxes.running()[0]).toMatchObject({ policyInForce: { internetAccess: true }, diskFailed: false });
});

test('several are taken over, and many leftovers removed, side by side', async () => {
  const together = { watch: Promise.withResolvers<void>(), release: Promise.withResolvers<void>() };
  const counts = { watch: 0, release: 0 };
  const numbers = Array.from({ length: 20 }, (_, index) => index);
  const { adopt, record } = node({
    leftovers: numbers.map(number => 100 + number),
    async meanwhile(name) {
      const step = name as keyof typeof counts;
      if (++counts[step] === (step === 'watch' ? 8 : 20)) together[step].resolve();
      await together[step].promise;
    },
  });
  for (const number of numbers) await record(running(`a${number}`, processesIn(number)));
  expect(await adopt()).toEqual({ adopted: 20, removed: 20, paused: 0 });
});

test('its end is noticed from then on', async () => {
  const { adopt, record, kinds, happened, die } = node();
  await record(running('a', processesIn(3)));
  await adopt();
  die();
  await until(() => happened.includes('a init_exited'));
  expect([happened.includes('end s3'), kinds()]).toEqual([true, {}]);
});

test('one that ends while it is taken over counts as ended', async () => {
  const place = processesIn(3);
  const { adopt, record, kinds, logged, happened } = node({
    ...{ leftovers: [3], fails: ['policy of a'] },
    onStep(name) {
      if (name !== 'policy of a') return;
      process.kill(place.pid, 'SIGKILL');
      while (isAlive(place)) Bun.sleepSync(1);
    },
  });
  await record(running('a', place));
  expect(await adopt()).toEqual({ adopted: 0, removed: 1, paused: 1 });
  expect(kinds()).toEqual({ a: 'paused' });
  expect(happened).toContain('release s3');
  expect(logged[0]).toBe('warn a sandbox ended while it was taken over');
});

test('its volumes are held, inner ones last', async () => {
  const { adopt, record, happened } = node();
  const volumes = [
    { volumeId: 'inner', path: '/data/more' },
    { volumeId: 'outer', path: '/data' },
  ];
  await record({ ...running('a', processesIn(3)), volumes });
  await adopt();
  expect(happened).toContain('hold outer,inner');
});

test('one that can’t be paused is still taken over', async () => {
  const { adopt, record, kinds, logged } = node({ fails: ['open disk'] });
  await record(running('a', processesIn(3)));
  await adopt();
  expect(kinds()).toEqual({ a: 'running' });
  expect(logged).toEqual(['error a sandbox that was taken over can’t be paused']);
});

test('one that runs and can’t be taken over is set aside with its slot', async () => {
  for (const [fails, closed] of [
    ['watch s3', []],
    ['policy of a', ['close s3']],
  ] as const) {
    const { adopt, record, recorded, sandboxes, happened, slots } = node({ leftovers: [3], fails: [fails] });
    await record(running('a', processesIn(3)));
    expect(await adopt()).toEqual({ adopted: 0, removed: 0, paused: 0 });
    expect(sandboxes.get('a')).toMatchObject({
      kind: 'unreadable',
      reason: `it runs and could not be taken over: ${fails} failed`,
      slot: { number: 3 },
      record: { sandboxId: 'a' },
    });
    expect(happened.filter(text => text.startsWith('close'))).toEqual([...closed]);
    expect(happened).not.toContain('release s3');
    expect([slots.used(), recorded('a')?.state]).toEqual([1, 'running']);
  }
});

test('the files of one that has ended are kept, as soon as nothing else of it is left', async () => {
  const { adopt, record, recorded, records, kinds, happened, slots, logged } = node({ leftovers: [3] });
  await record(running('a', gone(3)));
  mkdirSync(join(records.keptOf('a'), 'memory'));
  await record(running('b', gone(4)), { disk: false });
  expect(await adopt()).toEqual({ adopted: 0, removed: 1, paused: 1 });
  expect(kinds()).toEqual({ a: 'paused' });
  expect(recorded('a')).toMatchObject({ state: 'paused', kept: 'filesystem', executionId: 'a-1', frozen: null });
  await until(() => happened.length > 1);
  expect(happened).toEqual(['release s3', 'checksums of a']);
  // Memory that is older than the sandbox's files is useless.
  expect(existsSync(join(records.keptOf('a'), 'memory'))).toBeFalse();
  expect(records.list().map(({ sandboxId }) => sandboxId)).toEqual(['a']);
  expect([slots.used(), logged]).toEqual([0, ['warn a sandbox has lost its processes and is paused with its files']]);
});

test('checksums of a paused one are written where it has none', async () => {
  for (const hasChecksums of [true, false]) {
    const { adopt, record, happened, sandboxes } = node({ hasChecksums });
    await record(pausedRecord(running('a', gone(3)), 'filesystem', null));
    expect(await adopt()).toEqual({ adopted: 0, removed: 0, paused: 1 });
    await sandboxes.inTurn('a', async () => {});
    expect(happened).toEqual(hasChecksums ? [] : ['checksums of a']);
  }
});

test('one whose disk is found damaged after the start does not keep its memory', async () => {
  // This holds whether its disk can be repaired or not.
  const { adopt, record, sandboxes } = node({ isDamaged: true, fails: ['checksums of a'] });
  await record(pausedRecord(running('a', gone(3)), 'memory', null));
  await adopt();
  await sandboxes.inTurn('a', async () => {});
  expect(sandboxes.get('a')).toMatchObject({ kind: 'paused', record: { kept: 'filesystem' } });
});

test('one whose restore was cut off goes back to its files, whatever of it runs', async () => {
  const { adopt, record, layout, kinds, happened } = node({ leftovers: [3] });
  await record(running('a', processesIn(3)));
  writeFileSync(join(layout.run, 'restore-s3.conf'), '');
  await adopt();
  expect(kinds()).toEqual({ a: 'paused' });
  expect(happened[0]).toBe('release s3');
  expect(existsSync(join(layout.run, 'restore-s3.conf'))).toBeFalse();
});

test('a CRIU that went on without the platform is ended where its sandbox is gone', async () => {
  const { adopt, layout } = node({ leftovers: [3] });
  const config = join(layout.run, 'pause-s3.conf');
  writeFileSync(config, '');
  const criu = Bun.spawn(['tail', '-f', '/dev/null', config]);
  await adopt();
  await criu.exited;
  expect(criu.signalCode).toBe('SIGKILL');
});

test('a pause that a crash cut off was none, where its processes run on', async () => {
  const { adopt, record, recorded, records, kinds, frozenSlots, happened, sandboxes } = node({ leftovers: [3, 4, 5] });
  for (const [id, slot] of [
    ['runs', 3],
    ['frozen', 4],
  ] as const) {
    const place = processesIn(slot);
    await record(pausedRecord(running(id, place), 'memory', place));
  }
  await record(pausedRecord(running('ended', gone(5)), 'memory', gone(5)));
  frozenSlots.add(4);
  mkdirSync(join(records.keptOf('frozen'), 'memory.stale'));
  mkdirSync(join(records.keptOf('frozen'), 'memory'));
  expect(await adopt()).toEqual({ adopted: 1, removed: 2, paused: 2 });
  expect(kinds()).toEqual({ runs: 'running', frozen: 'paused', ended: 'paused' });
  expect(happened.filter(text => text.startsWith('release'))).toEqual(['release s4', 'release s5']);
  const known = recorded('runs');
  expect(known).toMatchObject({ state: 'running', slot: 3, resumedFrom: null, executionId: 'runs-1' });
  for (const of of ['kept', 'frozen', 'pausedAtMs', 'setAside']) expect(known).not.toHaveProperty(of);
  for (const id of ['frozen', 'ended']) {
    expect(recorded(id)).toMatchObject({ state: 'paused', kept: 'memory' });
    // By now its processes are gone.
    expect(sandboxes.get(id)).toMatchObject({ record: { kept: 'memory', frozen: null } });
  }
  expect(readdirSync(records.keptOf('frozen'))).toEqual(['disk.img', 'memory']);
});

test('one whose record is damaged stays, out of reach', async () => {
  const { adopt, layout, record, records, sandboxes, logged } = node();
  await record(running('a', gone(3)));
  writeFileSync(join(layout.sandboxes, 'a', 'record.json'), '{');
  expect(await adopt()).toEqual({ adopted: 0, removed: 0, paused: 0 });
  expect(sandboxes.get('a')).toMatchObject({ kind: 'unreadable', slot: null, record: null });
  expect(sandboxes.get('a')).toMatchObject({ reason: expect.stringContaining('what the node has recorded of it is') });
  expect(existsSync(records.diskOf('a'))).toBeTrue();
  expect(logged).toEqual([expect.stringContaining('`atoll sandbox orphans` lists it')]);
});

test('leftovers without a record are removed: slots, also found by their disks, and folders', async () => {
  const { adopt, layout, records, happened } = node({ leftovers: [1] });
  writeFileSync(join(layout.disks, 's12.img'), '');
  writeFileSync(join(layout.disks, 'standby.img'), '');
  records.keptOf('a');
  expect(await adopt()).toEqual({ adopted: 0, removed: 2, paused: 0 });
  expect(happened).toEqual(['release s1', 'release s12']);
  expect(records.list()).toEqual([]);
});

test('a leftover that can’t be removed is tried again after the start, and holds its slot until then', async () => {
  const { adopt, happened, slots, logged } = node({ leftovers: [1, 2], fails: ['release s1'] });
  expect(await adopt()).toMatchObject({ removed: 2 });
  expect([happened, slots.used()]).toEqual([['release s1', 'release s2'], 1]);
  await until(() => slots.used() === 0);
  expect(happened).toEqual(['release s1', 'release s2', 'release s1']);
  expect(logged).toEqual(['warn what a sandbox has left is removed later']);
});
