import { afterEach, expect, jest, test } from 'bun:test';
import { createLog } from '../../../base/telemetry/log.ts';
import type { ResumeSandbox, SandboxIncident } from '../../../protocol/node.ts';
import type { Slot } from '../../layout.ts';
import { pausedRecord, type PausedRecord, type RunningRecord, type SandboxRecord } from '../records/record.ts';
import type { Processes } from '../slot/processes.ts';
import type { Frozen, Running, Unreadable } from '../state/sandbox-state.ts';
import { Sandboxes } from '../state/sandboxes.ts';
import { killSandbox, type KillParts } from './end.ts';
import { dropAllFrozen } from './frozen.ts';
import { pauseSandbox, type PauseParts } from './pause.ts';
import { resumeSandbox, type ResumeParts } from './resume.ts';
import { listSetAside, removeSetAside, setAside, takeBack } from './set-aside.ts';

afterEach(() => void jest.useRealTimers());

const resources = { cpuCount: 2, memoryMiB: 512 };
const target = (sandboxId: string, executionId = 'e1') => ({ sandboxId, executionId });
const resumeOf = (sandboxId: string, memory = true) =>
  ({ ...target(sandboxId), nextExecutionId: 'e2', memory }) as unknown as ResumeSandbox;
const recordOf = (sandboxId: string, executionId = 'e1', resumedFrom: string | null = null) => {
  const facts = { image: { templateId: 't', buildId: 'b', layers: [] }, resources, volumes: [], network: {} };
  return {
    ...target(sandboxId, executionId),
    ...facts,
    state: 'running',
    resumedFrom,
    startedAtMs: 5,
  } as unknown as RunningRecord;
};

/** A node whose parts only record their calls, in `happened`; those named in `fails` fail once. */
function node({ fails = [] as string[], frozenMs = 0 } = {}) {
  const [happened, logged, entries, failing] = [[] as string[], [] as string[], [] as string[], [...fails]];
  const step = (name: string) => {
    happened.push(name);
    const at = failing.indexOf(name);
    if (at >= 0) throw new Error(`${failing.splice(at, 1)} failed`);
  };
  const sandboxes = new Sandboxes();
  const ends = new Map<string, () => void>();
  const thawed = new Set<string>();
  const driver = {
    killFrozen: ({ name }: Slot) => step(`kill frozen ${name}`),
    isFrozen: ({ name }: Slot) => !thawed.has(name),
    outOfMemoryKills: () => 0,
  };
  const processesOf = (sandboxId: string): Processes => {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    ends.set(sandboxId, resolve);
    return { slot: { name: sandboxId }, driver, namespace: {}, ended } as unknown as Processes;
  };
  const parts = {
    sandboxes,
    frozenMs,
    log: createLog('debug', line => logged.push(JSON.parse(line).message)),
    records: {
      async write(record: SandboxRecord) {
        const facts = record.state === 'paused' ? [record.setAside && 'set aside', record.frozen && 'frozen'] : [];
        step(['record', record.state, ...facts.filter(Boolean)].join(' '));
      },
      forget: (id: string) => step(`forget ${id}`),
      remove: async (id: string) => step(`remove ${id}`),
    },
    whyMemoryLost: async () => undefined,
    processControl: {
      end: async ({ slot }: Processes) => step(`end ${slot.name}`),
      release: async ({ slot }: Processes) => step(`release ${slot.name}`),
    },
    cleanups: { begin: () => {} },
    logs: {
      write: (...[, , , text]: string[]) => void entries.push(text ?? ''),
      catchUp: async (id: string) => step(`catch up ${id}`),
      leave: async (id: string) => step(`leave ${id}`),
      follow: ({ sandboxId }: { sandboxId: string }) => step(`follow ${sandboxId}`),
    },
    incidents: { report: ({ sandboxId, reason }: SandboxIncident) => step(`${sandboxId} ${reason}`) },
    kept: { writeChecksums: async (id: string) => step(`checksums ${id}`) },
    async admitAgain() {
      step('admit');
      return { [Symbol.dispose]: () => void happened.push('room') };
    },
    async startAgain(record: PausedRecord, { sandboxId }: ResumeSandbox) {
      step('start again');
      if (fails.includes('the processes')) return { error: new Error('no start'), record: { ...record, kept: 'left' } };
      return { record: recordOf(sandboxId, 'e2', 'filesystem'), processes: processesOf(sandboxId) };
    },
    async thaw({ sandboxId, processes }: Frozen) {
      step('thaw');
      return { record: recordOf(sandboxId, 'e2', 'memory'), processes };
    },
    async keep({ record }: { record: RunningRecord }, { memory }: { memory: boolean }) {
      step(`keep ${memory ? 'memory' : 'files'}`);
      return pausedRecord(record, memory ? 'memory' : 'filesystem', memory && frozenMs > 0 ? ({} as never) : null);
    },
    discardMemory: async (id: string) => step(`discard memory ${id}`),
    withdrawn: { require: () => step('may begin') },
  } as unknown as ResumeParts & PauseParts & KillParts;
  const did = () => happened.splice(0);
  return {
    ...{ parts, sandboxes, did, logged, entries, ends, thawed, fail: (name: string) => void failing.push(name) },
    kindOf: (id: string) => sandboxes.get(id)?.kind ?? 'gone',
    run(id: string) {
      const facts = { record: recordOf(id), processes: processesOf(id), policyInForce: null, diskFailed: false };
      sandboxes.add<Running>({ kind: 'running', sandboxId: id, ...facts });
    },
    async pause(id: string, memory = true) {
      await pauseSandbox(parts, target(id), { memory });
      did();
    },
    /** Resolves when all that was asked for a sandbox so far is done. */
    settled: async (id: string) => {
      for (let turn = 0; turn < 3; turn++) await sandboxes.inTurn(id, async () => {});
    },
  };
}

test('a kill of a paused sandbox removes what it kept; the processes of a frozen one never run again', async () => {
  const { parts, run, pause, did, kindOf } = node({ frozenMs: 60_000 });
  for (const [memory, steps] of [
    [false, ['forget a', 'remove a']],
    [true, ['forget a', 'kill frozen a', 'end a']],
  ] as const) {
    run('a');
    await pause('a', memory);
    await killSandbox(parts, target('a'), 'timed_out');
    expect(did()).toEqual([...steps]);
    expect(kindOf('a')).toBe('gone');
  }
});

test('a pause with files keeps them, and then frees what the sandbox used', async () => {
  const { parts, run, did, kindOf, entries } = node({ frozenMs: 60_000 });
  run('a');
  const asked = [
    pauseSandbox(parts, target('a'), { memory: false }),
    pauseSandbox(parts, target('a'), { memory: true }),
  ];
  const [paused, again] = await Promise.all(asked);
  expect(paused).toEqual({ ...target('a'), kept: 'filesystem', pausedAtMs: expect.any(Number) as number });
  expect(again).toEqual(paused as NonNullable<typeof paused>);
  expect(did()).toEqual(['catch up a', 'keep files', 'leave a', 'kill frozen a', 'release a', 'checksums a']);
  expect([kindOf('a'), entries.at(-1)]).toEqual(['paused', 'paused with its files']);
  expect(await pauseSandbox(parts, target('a'), { memory: true })).toEqual(paused as NonNullable<typeof paused>);
  await expect(pauseSandbox(parts, target('a', 'e2'), { memory: true })).rejects.toThrow('does not run on this node');
  expect(did()).toEqual([]);
});

test('the end of what a pause has ended is no incident', async () => {
  const { run, pause, did, ends, kindOf, settled } = node();
  run('a');
  await pause('a');
  ends.get('a')?.();
  await settled('a');
  expect([kindOf('a'), did()]).toEqual(['paused', []]);
});

test('a pause that fails leaves the sandbox running', async () => {
  for (const fails of ['catch up a', 'keep files']) {
    const { parts, run, pause, kindOf, fail } = node();
    run('a');
    fail(fails);
    await expect(pauseSandbox(parts, target('a'), { memory: false })).rejects.toThrow(`${fails} failed`);
    expect(kindOf('a')).toBe('running');
    await pause('a');
    expect(kindOf('a')).toBe('paused');
  }
});

test('a sandbox is paused even where what it used can’t be freed or be put under checksums', async () => {
  const { run, pause, kindOf, logged } = node({ fails: ['release a', 'checksums a'] });
  run('a');
  await pause('a', false);
  expect(kindOf('a')).toBe('paused');
  expect(logged).toEqual(['what a paused sandbox used could not be freed', 'a paused sandbox has no checksums']);
});

test('frozen processes are ended when their time is over, after that is recorded', async () => {
  jest.useFakeTimers();
  const { parts, run, did, kindOf, entries, settled, logged, fail } = node({ frozenMs: 60_000 });
  run('a');
  await pauseSandbox(parts, target('a'), { memory: true });
  expect(did()).toEqual(['keep memory', 'leave a']);
  expect([kindOf('a'), entries.at(-1)]).toEqual(['frozen', 'paused with its memory']);
  jest.advanceTimersByTime(59_999);
  await settled('a');
  expect(kindOf('a')).toBe('frozen');
  fail('record paused');
  jest.advanceTimersByTime(1);
  await settled('a');
  expect(did()).toEqual(['record paused', 'kill frozen a', 'release a', 'checksums a']);
  expect([kindOf('a'), logged]).toEqual([
    'paused',
    ['the end of the processes of a paused sandbox could not be recorded'],
  ]);
});

test('the longest frozen makes room for one too many, and an end of frozen processes is noticed', async () => {
  const { parts, run, pause, sandboxes, ends, settled, did, kindOf } = node({ frozenMs: 60_000 });
  const ids = Array.from({ length: 17 }, (_, index) => `s${index}`);
  for (const [index, id] of ids.entries()) {
    run(id);
    const now = jest.spyOn(Date, 'now').mockReturnValue(1_000 - index);
    await pause(id);
    now.mockRestore();
    if (index === 15) expect([...sandboxes.all()].every(({ kind }) => kind === 'frozen')).toBeTrue();
  }
  await settled('s16');
  expect([...sandboxes.all()].filter(({ kind }) => kind === 'paused').map(({ sandboxId }) => sandboxId)).toEqual([
    's16',
  ]);
  did();
  ends.get('s3')?.();
  await settled('s3');
  expect([kindOf('s3'), did()]).toEqual(['paused', ['record paused', 'kill frozen s3', 'release s3', 'checksums s3']]);
  await dropAllFrozen(parts);
  expect([...sandboxes.all()].every(({ kind }) => kind === 'paused')).toBeTrue();
  expect(did()).toHaveLength(15 * 4);
});

test('a resume goes on with frozen processes, once for each next execution', async () => {
  const { parts, run, pause, did, kindOf, entries } = node({ frozenMs: 60_000, fails: ['discard memory a'] });
  run('a');
  await pause('a');
  const [first, second] = await Promise.all([resumeSandbox(parts, resumeOf('a')), resumeSandbox(parts, resumeOf('a'))]);
  expect(second).toBe(first);
  expect(did()).toEqual(['may begin', 'thaw', 'follow a', 'discard memory a']);
  expect([kindOf('a'), entries.at(-1)]).toEqual(['running', 'resumed with its memory']);
  await expect(resumeSandbox(parts, { ...resumeOf('a'), nextExecutionId: 'e3' })).rejects.toThrow('is not paused');
});

test('processes that can’t be thawed are ended, and what was kept is still there', async () => {
  const { parts, run, pause, did, kindOf } = node({ frozenMs: 60_000, fails: ['thaw'] });
  run('a');
  await pause('a');
  await expect(resumeSandbox(parts, resumeOf('a'))).rejects.toThrow('thaw failed');
  expect(did()).toEqual(['may begin', 'thaw', 'record paused', 'kill frozen a', 'release a', 'checksums a']);
  expect(kindOf('a')).toBe('paused');
});

test('a resume without its memory, or of processes that somebody else has thawed, starts from the disk', async () => {
  for (const memory of [false, true]) {
    const { parts, run, pause, thawed, did, kindOf, entries, ends, settled } = node({ frozenMs: 60_000 });
    run('a');
    await pause('a');
    if (memory) thawed.add('a');
    await resumeSandbox(parts, resumeOf('a', memory));
    const dropped = ['record paused', 'kill frozen a', 'release a', 'checksums a'];
    const started = ['admit', 'start again', 'room', 'follow a', 'discard memory a'];
    expect(did()).toEqual(['may begin', ...dropped, ...started]);
    expect([kindOf('a'), entries.at(-1)]).toEqual(['running', 'resumed: booted from its files']);
    ends.get('a')?.();
    await settled('a');
    expect(did().at(-1)).toBe('a init_exited');
  }
});

test('a resume that has no room or fails leaves the sandbox paused, with what is left of it', async () => {
  for (const [fails, kept, error] of [
    ['admit', 'filesystem', 'admit failed'],
    ['the processes', 'left', 'no start'],
    ['start again', 'filesystem', 'start again failed'],
  ] as const) {
    const { parts, sandboxes, run, pause, entries } = node({ fails: fails === 'admit' ? [] : [fails] });
    run('a');
    await pause('a', false);
    const admitAgain = fails === 'admit' ? () => Promise.reject(new Error('admit failed')) : parts.admitAgain;
    await expect(resumeSandbox({ ...parts, admitAgain }, resumeOf('a'))).rejects.toThrow(error);
    expect(sandboxes.get('a')).toMatchObject({ kind: 'paused', record: { kept } });
    expect(entries.at(-1)).toBe('paused with its files');
  }
});

test('one that nobody answers for is set aside with its memory, or else with its files', async () => {
  for (const [fails, kept] of [
    [[], 'memory'],
    [['keep memory'], 'filesystem'],
  ] as const) {
    const { parts, sandboxes, run, did } = node({ frozenMs: 60_000, fails: [...fails] });
    run('a');
    await setAside(parts, target('a'), 'nobody knows it');
    // Nothing of it may run when it is marked.
    expect(did().slice(-4)).toEqual(['kill frozen a', 'release a', 'checksums a', 'record paused set aside']);
    const [known] = listSetAside(sandboxes);
    expect(known).toMatchObject({ sandboxId: 'a', reason: 'nobody knows it', known: { executionId: 'e1', kept } });
    expect(known?.known).toMatchObject({ image: { templateId: 't', buildId: 'b' }, resources, startedAtMs: 5 });
  }
});

test('a sandbox is set aside once, as the execution that was meant; one that is not here is no failure', async () => {
  const { parts, sandboxes, run, did } = node();
  run('a');
  await setAside(parts, target('a', 'e2'), 'another one');
  await setAside(parts, target('b'), 'not here');
  expect([listSetAside(sandboxes), did()]).toEqual([[], []]);
  await setAside(parts, target('a'), 'first');
  did();
  await setAside(parts, target('a'), 'second');
  expect(did()).toEqual([]);
  expect(listSetAside(sandboxes)).toMatchObject([{ reason: 'first' }]);
});

test('a sandbox set aside can be taken back or removed; an ordinary paused one can’t', async () => {
  const { parts, sandboxes, run, pause, did, kindOf } = node();
  run('a');
  await pause('a', false);
  await expect(takeBack(parts, target('a'))).rejects.toThrow('Sandbox "a" is not set aside');
  await expect(takeBack(parts, target('b'))).rejects.toThrow('Sandbox "b" is not set aside');
  await expect(removeSetAside(parts, 'a')).rejects.toThrow('Sandbox "a" is not set aside');
  expect(listSetAside(sandboxes)).toEqual([]);
  await setAside(parts, target('a'), 'nobody knows it');
  did();
  expect(await takeBack(parts, target('a'))).toMatchObject({ ...target('a'), kept: 'filesystem' });
  expect([did(), kindOf('a'), listSetAside(sandboxes)]).toEqual([['record paused'], 'paused', []]);
  await setAside(parts, target('a'), 'nobody knows it');
  await removeSetAside(parts, 'a');
  expect(kindOf('a')).toBe('gone');
});

test('a mark that could not be recorded does not count', async () => {
  const { parts, sandboxes, run, pause, fail } = node();
  run('a');
  await pause('a', false);
  fail('record paused set aside');
  await expect(setAside(parts, target('a'), 'nobody knows it')).rejects.toThrow('failed');
  expect(listSetAside(sandboxes)).toEqual([]);
});

test('one out of reach is listed with what its record says, where that can be read', () => {
  const { sandboxes } = node();
  const record = recordOf('a');
  const out = { kind: 'unreadable', sinceMs: 1, reason: 'it is damaged', slot: null } as const;
  sandboxes.add<Unreadable>({ ...out, sandboxId: 'a', record });
  sandboxes.add<Unreadable>({ ...out, sandboxId: 'b', record: null });
  expect(listSetAside(sandboxes)).toMatchObject([
    { sandboxId: 'a', sinceMs: 1, reason: 'it is damaged', known: { executionId: 'e1', kept: 'filesystem' } },
    { sandboxId: 'b', known: null },
  ]);
});
