import { afterEach, expect, jest, test } from 'bun:test';
import { createLog } from '../../../base/telemetry/log.ts';
import type { CreateSandbox, SandboxIncident } from '../../../protocol/node.ts';
import type { Slot } from '../../layout.ts';
import type { KeepSource } from '../keep/keep-sandbox.ts';
import type { RunningRecord } from '../records/record.ts';
import type { Processes } from '../slot/processes.ts';
import type { Unreadable } from '../state/sandbox-state.ts';
import { Sandboxes } from '../state/sandboxes.ts';
import { createSandbox, type CreateParts } from './create.ts';
import { endUnreadable, killSandbox, type KillParts } from './end.ts';
import { removeSetAside } from './set-aside.ts';
import { withdrawExecution } from './withdraw.ts';

afterEach(() => void jest.useRealTimers());

const image = { templateId: 't', buildId: 'b', layers: [] };
const order = (sandboxId: string, executionId = 'e1') =>
  ({ sandboxId, executionId, image, resources: { cpuCount: 2, memoryMiB: 512 } }) as unknown as CreateSandbox;
const target = (sandboxId: string, executionId = 'e1') => ({ sandboxId, executionId });

/**
 * A node whose parts only record their calls, in `happened`; those named in `fails` fail once. Cleanups wait for
 * `cleanUp`. `outOfMemory`: how often the kernel has killed in a sandbox; `lost`: why memory did not come.
 */
function node({ fails = [] as string[], outOfMemory = 0, lost = undefined as (() => string) | undefined } = {}) {
  const [happened, logged, entries, failing] = [[] as string[], [] as string[], [] as string[], [...fails]];
  const step = (name: string) => {
    happened.push(name);
    const at = failing.indexOf(name);
    if (at >= 0) throw new Error(`${failing.splice(at, 1)} failed`);
  };
  const sandboxes = new Sandboxes();
  const withdrawn = new Set<string>();
  const ends = new Map<string, () => void>();
  const waiting: (() => Promise<void>)[] = [];
  const driver = { killFrozen: ({ name }: Slot) => step(`kill frozen ${name}`), outOfMemoryKills: () => outOfMemory };
  const processesOf = (sandboxId: string): Processes => {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    ends.set(sandboxId, resolve);
    return { slot: { name: sandboxId }, driver, ended } as unknown as Processes;
  };
  const parts = {
    sandboxes,
    log: createLog('debug', line => logged.push(JSON.parse(line).message)),
    records: { forget: (id: string) => step(`forget ${id}`), remove: async (id: string) => step(`remove ${id}`) },
    processControl: {
      end: async ({ slot }: Processes) => step(`end ${slot.name}`),
      release: async ({ slot }: Processes) => step(`release ${slot.name}`),
    },
    whyMemoryLost: async () => lost?.(),
    async keepFilesOfEnded({ record }: KeepSource) {
      step(`keep files of ${record.sandboxId}`);
      return { ...record, state: 'paused', kept: 'filesystem' };
    },
    kept: { writeChecksums: async (id: string) => step(`checksums of ${id}`) },
    slotHost: {
      empty: async ({ name }: Slot) => step(`empty ${name}`),
      give: ({ name }: Slot) => step(`give ${name}`),
    },
    cleanups: {
      begin(name: string, free: () => Promise<void>) {
        step(`clean up ${name} later`);
        waiting.push(free);
      },
    },
    logs: {
      write: (...[, , , text]: string[]) => void entries.push(text ?? ''),
      catchUp: async (id: string) => step(`catch up ${id}`),
      leave: async (id: string) => step(`leave ${id}`),
      follow: ({ sandboxId }: { sandboxId: string }) => step(`follow ${sandboxId}`),
    },
    incidents: { report: ({ sandboxId, reason }: SandboxIncident) => step(`${sandboxId} ${reason}`) },
    drivers: { keepersOf: () => [] },
    async admitNew() {
      step('admit');
      return { [Symbol.dispose]: () => void happened.push('room') };
    },
    async startNew({ sandboxId, executionId }: CreateSandbox) {
      step('start');
      return { record: { ...order(sandboxId, executionId), network: {} }, processes: processesOf(sandboxId) };
    },
    withdrawn: {
      add: (id: string) => void withdrawn.add(id),
      require: (id: string) => step(withdrawn.has(id) ? 'withdrawn' : 'may begin'),
    },
  } as unknown as CreateParts & KillParts & Parameters<typeof withdrawExecution>[0];
  const did = () => happened.splice(0);
  return {
    ...{ parts, sandboxes, did, logged, entries, ends, processesOf, fail: (name: string) => void failing.push(name) },
    kindOf: (id: string) => sandboxes.get(id)?.kind ?? 'gone',
    /** Adds a running sandbox. */
    async create(id: string) {
      await createSandbox(parts, order(id));
      did();
    },
    cleanUp: async () => Promise.all(waiting.splice(0).map(free => free())),
    /** Resolves when all that was asked for a sandbox so far is done. */
    settled: async (id: string) => {
      for (let turn = 0; turn < 3; turn++) await sandboxes.inTurn(id, async () => {});
    },
  };
}

test('an execution is created once, however often it is asked for', async () => {
  const { parts, did, entries, kindOf } = node();
  const asked = [createSandbox(parts, order('a')), createSandbox(parts, order('a'))];
  await expect(createSandbox(parts, order('a', 'e2'))).rejects.toThrow('sandbox a is here already: it is starting');
  const records = await Promise.all([...asked, createSandbox(parts, order('a'))]);
  expect(new Set(records).size).toBe(1);
  expect(await createSandbox(parts, order('a'))).toMatchObject(target('a'));
  await expect(createSandbox(parts, order('a', 'e2'))).rejects.toThrow('sandbox a is here already: it is running');
  // The room is free for others as soon as the sandbox uses its memory.
  expect(did()).toEqual(['may begin', 'admit', 'start', 'room', 'follow a']);
  expect([kindOf('a'), entries]).toEqual(['running', ['created from template t']]);
});

test('a create that fails or was withdrawn leaves nothing', async () => {
  for (const fails of ['admit', 'start', 'may begin']) {
    const { parts, kindOf, entries, create } = node({ fails: [fails] });
    await expect(createSandbox(parts, order('a'))).rejects.toThrow(`${fails} failed`);
    expect([kindOf('a'), entries]).toEqual(['gone', []]);
    await create('a');
    expect(kindOf('a')).toBe('running');
  }
});

test('an execution is withdrawn where it has not begun, and what is under way is waited for', async () => {
  const { parts, sandboxes, did } = node();
  const withdrawn = parts.withdrawn as Parameters<typeof withdrawExecution>[0]['withdrawn'];
  const created = createSandbox(parts, order('a'));
  expect(await withdrawExecution({ sandboxes, withdrawn }, target('a'))).toBeFalse();
  await created;
  expect(await withdrawExecution({ sandboxes, withdrawn }, target('a', 'e2'))).toBeTrue();
  expect(await withdrawExecution({ sandboxes, withdrawn }, target('b'))).toBeTrue();
  did();
  await createSandbox(parts, order('c', 'e2'));
  expect(did()[0]).toBe('withdrawn');
});

test('a kill ends a sandbox in an order that a crash can cut anywhere', async () => {
  const { parts, create, did, kindOf, entries, cleanUp } = node();
  await create('a');
  await killSandbox(parts, target('a', 'e2'));
  expect([kindOf('a'), did()]).toEqual(['running', []]);
  await killSandbox(parts, target('a'));
  expect(did()).toEqual(['catch up a', 'leave a', 'forget a', 'end a', 'clean up a later']);
  expect([kindOf('a'), entries.at(-1)]).toEqual(['gone', 'killed']);
  await cleanUp();
  expect(did()).toEqual(['empty a', 'remove a', 'give a']);
  await killSandbox(parts, target('a'));
  expect(did()).toEqual([]);
});

test('an end that fails is tried again by itself until it succeeds, and by whoever asks', async () => {
  jest.useFakeTimers();
  const { parts, create, fail, did, kindOf, logged, settled } = node();
  await create('a');
  fail('end a');
  await expect(killSandbox(parts, target('a'))).rejects.toThrow('end a failed');
  expect(kindOf('a')).toBe('ending');
  did();
  // A request in between does not begin a second series of attempts.
  for (let round = 0; round < 2; round++) {
    fail('end a');
    await expect(killSandbox(parts, target('a'))).rejects.toThrow('end a failed');
  }
  expect(did()).toEqual(['forget a', 'end a', 'forget a', 'end a']);
  fail('end a');
  jest.advanceTimersByTime(1_000);
  await settled('a');
  expect(did()).toEqual(['forget a', 'end a']);
  expect(logged).toEqual(['a sandbox that is to end can not be removed']);
  jest.advanceTimersByTime(1_000);
  await settled('a');
  expect([kindOf('a'), did()]).toEqual(['gone', ['forget a', 'end a', 'clean up a later']]);
  jest.advanceTimersByTime(10_000);
  await settled('a');
  expect(did()).toEqual([]);
});

test('a sandbox whose processes end by themselves is ended and reported, with the reason', async () => {
  for (const [outOfMemory, reason, text] of [
    [0, 'init_exited', 'ended by itself: its first process ended'],
    [1, 'out_of_memory', 'ended: its memory was used up'],
  ] as const) {
    const { create, did, ends, kindOf, settled, entries } = node({ outOfMemory });
    await create('a');
    ends.get('a')?.();
    await settled('a');
    expect([kindOf('a'), did().at(-1), entries.at(-1)]).toEqual(['gone', `a ${reason}`, text]);
  }
});

test.each(['it was killed', null])('one that ended for its memory is paused with its files: %s', async why => {
  const lost = () => {
    if (why === null) throw new Error('nobody knows');
    return why;
  };
  const { create, did, ends, kindOf, settled, entries, logged } = node({ lost });
  await create('a');
  ends.get('a')?.();
  await settled('a');
  expect(did()).toEqual([
    ...['keep files of a', 'leave a', 'kill frozen a', 'release a', 'checksums of a', 'a memory_lost'],
  ]);
  const text = 'paused with its files: its memory could not all be brought back';
  expect([kindOf('a'), entries.at(-1)]).toEqual(['paused', text]);
  expect(logged).toEqual(['a sandbox has lost memory that was to come, and is paused with its files']);
});

test('if its files can’t be kept it is tried again, until somebody kills it', async () => {
  jest.useFakeTimers();
  const { parts, create, did, ends, kindOf, settled, fail } = node({ lost: () => 'it was killed' });
  for (const id of ['a', 'b']) {
    await create(id);
    fail(`keep files of ${id}`);
    ends.get(id)?.();
    await settled(id);
    expect([kindOf(id), did()]).toEqual(['running', [`keep files of ${id}`]]);
  }
  await killSandbox(parts, target('b'));
  did();
  jest.advanceTimersByTime(1_000);
  for (const id of ['a', 'b']) await settled(id);
  expect([kindOf('a'), kindOf('b'), did()[0]]).toEqual(['paused', 'gone', 'keep files of a']);
});

test('the end of what a kill has ended is no incident, and one that can’t be removed is', async () => {
  const { parts, create, did, ends, kindOf, settled, fail, logged } = node();
  await create('b');
  const endB = ends.get('b');
  await killSandbox(parts, target('b'));
  await create('b');
  endB?.();
  await settled('b');
  expect([kindOf('b'), did()]).toEqual(['running', []]);
  fail('end b');
  ends.get('b')?.();
  await settled('b');
  expect([kindOf('b'), did().at(-1)]).toEqual(['ending', 'b init_exited']);
  expect(logged).toEqual(['a sandbox that ended could not be removed']);
});

test('one out of reach is removed if its execution is certain, or an operator says so', async () => {
  const { parts, sandboxes, did, kindOf } = node({ fails: ['empty a'] });
  const slot = { name: 'a' } as Slot;
  const record = { executionId: 'e1' } as RunningRecord;
  const unreadable = { kind: 'unreadable', sinceMs: 1, reason: 'it is damaged' } as const;
  sandboxes.add<Unreadable>({ ...unreadable, sandboxId: 'a', slot, record });
  sandboxes.add<Unreadable>({ ...unreadable, sandboxId: 'b', slot: null, record: null });
  await killSandbox(parts, target('a', 'e2'));
  await killSandbox(parts, target('b'));
  expect([kindOf('a'), kindOf('b'), did()]).toEqual(['unreadable', 'unreadable', []]);
  await expect(killSandbox(parts, target('a'))).rejects.toThrow('empty a failed');
  did();
  await killSandbox(parts, target('a'));
  expect(did()).toEqual(['forget a', 'empty a', 'remove a', 'give a']);
  await removeSetAside(parts, 'b');
  expect([kindOf('a'), kindOf('b'), did()]).toEqual(['gone', 'gone', ['forget b', 'remove b']]);
  await expect(removeSetAside(parts, 'b')).rejects.toThrow('Sandbox "b" is not set aside on this node');
  sandboxes.add<Unreadable>({ ...unreadable, sandboxId: 'a', slot, record });
  await sandboxes.inTurn('a', () => endUnreadable(parts, sandboxes.get('a') as Unreadable));
  expect(did()).toHaveLength(4);
});
