import { describe, expect, test } from 'bun:test';
import type { CreateSandbox, ExecutionRef, ResumeSandbox } from '../../src/protocol/node.ts';
import { createSandbox } from '../../src/node/sandbox/lifecycle/create.ts';
import { killSandbox } from '../../src/node/sandbox/lifecycle/end.ts';
import { dropAllFrozen } from '../../src/node/sandbox/lifecycle/frozen.ts';
import { pauseSandbox } from '../../src/node/sandbox/lifecycle/pause.ts';
import { resumeSandbox } from '../../src/node/sandbox/lifecycle/resume.ts';
import { setAside, takeBack } from '../../src/node/sandbox/lifecycle/set-aside.ts';
import { updateNetwork } from '../../src/node/sandbox/lifecycle/update-network.ts';
import { createFaultyHost, type Fault, type FaultyHost } from './support/faulty-host.ts';

// Random operations on a few sandboxes, several at a time, on a host whose steps fail, hang and lose processes. After
// each round, the sandboxes are compared with a model that has one line per operation, and the host with the sandboxes.

const rounds = 150;
const sandboxIds = ['a', 'b', 'c'];
const fixedSeeds = [1, 2, 3, 4, 5, 6, 7, 8];
const seeds = [...fixedSeeds, Math.floor(Math.random() * 2 ** 31)];

/** A sandbox in the model: absent if it has no entry. */
type Modelled = { executionId: string; state: 'running' | 'paused'; isSetAside: boolean };

type Operation = {
  name: string;
  sandboxId: string;
  run(): Promise<unknown>;
  /** The effect on the model if it succeeds. */
  apply(model: Map<string, Modelled>): void;
  /** The effect on the model if it fails: none, unless it has two steps. */
  applyFailed?(model: Map<string, Modelled>): void;
};

/** Numbers between 0 and 1, the same for the same seed. Source: mulberry32 by Tommy Ettinger, public domain. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe('whatever happens, sandboxes are what was asked of them, and the host holds nothing else', () => {
  for (const seed of seeds) test(`seed ${seed}`, () => play(seed), 30_000);
});

async function play(seed: number): Promise<void> {
  const random = randomOf(seed);
  const below = (bound: number) => Math.floor(random() * bound);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  let faulty = true;
  const befalls = (): Fault => {
    if (!faulty || random() < 0.8) return 'none';
    return pick(['fails', 'hangs', 'hangs and fails', 'processes die']);
  };
  const host = createFaultyHost(befalls, () => below(4));
  const model = new Map<string, Modelled>();
  let number = 0;
  const seen = new Map<string, number>();

  for (let round = 0; round < rounds; round++) {
    const operations = Array.from({ length: 1 + below(4) }, () =>
      draw(host, pick(sandboxIds), model, pick, () => `e${number++}`),
    );
    // In request order, as each sandbox processes them; some wait for others to be in progress.
    const outcomes = operations.map(({ run }) =>
      run().then(
        () => true,
        () => false,
      ),
    );
    if (random() < 0.3) pickDeath(host, pick)?.die();
    if (random() < 0.2) void dropAllFrozen(host.parts);
    const results = await settle(host, outcomes);
    for (const [index, operation] of operations.entries()) {
      if (results[index] !== true) {
        operation.applyFailed?.(model);
        continue;
      }
      operation.apply(model);
      seen.set(operation.name, (seen.get(operation.name) ?? 0) + 1);
    }
    compare(
      host,
      model,
      `round ${round}: ${operations.map(({ name, sandboxId }) => `${name} ${sandboxId}`).join(', ')}`,
    );
  }

  // A recovered host gives everything back.
  faulty = false;
  for (const state of host.sandboxes.all())
    if (state.kind !== 'starting' && state.record) await killSandbox(host.parts, state.record);
  await settle(host, []);
  expect([...host.sandboxes.all()]).toEqual([]);
  expect([host.alive().length, host.slotsUsed(), host.noted.size]).toEqual([0, 0, 0]);
  // A run without any operation shows nothing.
  expect([...seen.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan(rounds / 3);
}

/** Something that somebody may request now, sensible or not. */
function draw(
  { parts, sandboxes }: FaultyHost,
  sandboxId: string,
  model: Map<string, Modelled>,
  pick: <T>(list: readonly T[]) => T,
  newExecution: () => string,
): Operation {
  // Now and then a late command for an execution that is over.
  const executionId = pick([model.get(sandboxId)?.executionId ?? 'none', 'over']);
  const target: ExecutionRef = { sandboxId, executionId };
  const next = newExecution();
  const put = (change: Partial<Modelled>) => (model: Map<string, Modelled>) => {
    const known = model.get(sandboxId) ?? { executionId, state: 'running', isSetAside: false };
    model.set(sandboxId, { ...known, ...change });
  };
  const network = { internetAccess: false, allowOut: [next] };
  return pick<() => Operation>([
    () => ({
      name: 'create',
      sandboxId,
      run: () => createSandbox(parts, createRequest(sandboxId, next)),
      apply: put({ executionId: next, state: 'running', isSetAside: false }),
    }),
    () => ({
      name: 'pause',
      sandboxId,
      run: () => pauseSandbox(parts, target, { memory: pick([true, true, false]) }),
      apply: put({ state: 'paused' }),
    }),
    () => ({
      name: 'resume',
      sandboxId,
      run: () => resumeSandbox(parts, resumeRequest(target, next)),
      apply: put({ executionId: next, state: 'running', isSetAside: false }),
    }),
    () => ({
      name: 'kill',
      sandboxId,
      run: () => killSandbox(parts, target),
      apply(model) {
        if (model.get(sandboxId)?.executionId === executionId) model.delete(sandboxId);
      },
    }),
    () => ({ name: 'update', sandboxId, run: () => updateNetwork(parts, target, network), apply: () => {} }),
    () => {
      const apply = () => {
        const state = sandboxes.get(sandboxId);
        if (state?.kind === 'paused' && state.record.executionId === executionId)
          put({ state: 'paused', isSetAside: state.record.setAside !== null })(model);
      };
      // It pauses first: if it fails after that, the sandbox is paused.
      const run = () => setAside(parts, target, 'nobody knows it');
      return { name: 'set aside', sandboxId, run, apply, applyFailed: apply };
    },
    () => ({ name: 'take back', sandboxId, run: () => takeBack(parts, target), apply: put({ isSetAside: false }) }),
  ])();
}

/** Processes that end by themselves now. */
function pickDeath(host: FaultyHost, pick: <T>(list: readonly T[]) => T) {
  const alive = host.alive();
  return alive.length === 0 ? undefined : pick(alive);
}

/** Waits until everything has ended, and releases whatever hangs meanwhile. Fails if something waits for nothing. */
async function settle(host: FaultyHost, outcomes: Promise<boolean>[]): Promise<boolean[]> {
  let results: boolean[] | undefined;
  void Promise.all(outcomes).then(all => (results = all));
  let quiet = 0;
  for (let turn = 0; quiet < 5; turn++) {
    // Steps use only turns of the promise queue: one turn of the event loop ends everything that can go on.
    await new Promise(resolve => setImmediate(resolve));
    host.release();
    if (turn > 1_000) throw new Error('an operation waits for ever');
    quiet = results && isQuiet(host) ? quiet + 1 : 0;
  }
  return results ?? [];
}

const isQuiet = ({ sandboxes }: FaultyHost) =>
  [...sandboxes.all()].every(({ kind }) => !['starting', 'pausing', 'resuming'].includes(kind));

/** The sandboxes match the model, and processes and records match the sandboxes. */
function compare(host: FaultyHost, model: Map<string, Modelled>, context: string): void {
  const alive = host.alive();
  for (const sandboxId of sandboxIds) {
    const state = host.sandboxes.get(sandboxId);
    const own = alive.filter(processes => processes.sandboxId === sandboxId);
    const expected = model.get(sandboxId);
    const note = host.noted.get(sandboxId);
    // A sandbox whose processes ended by themselves is gone. One whose removal failed waits for the next kill.
    if (expected?.state === 'running' && (state === undefined || state.kind === 'ending')) model.delete(sandboxId);
    if (expected?.state === 'paused' && state?.kind === 'ending') model.delete(sandboxId);
    const facts = { context, sandboxId, kind: state?.kind };
    switch (state?.kind) {
      case 'running':
        expect({ ...facts, ...model.get(sandboxId) }).toMatchObject({
          executionId: state.record.executionId,
          state: 'running',
        });
        expect({ ...facts, processes: own.map(processes => processes.state) }).toEqual({
          ...facts,
          processes: ['running'],
        });
        expect({ ...facts, state: note?.state, executionId: note?.executionId }).toEqual({
          ...facts,
          state: 'running',
          executionId: state.record.executionId,
        });
        break;
      case 'frozen':
      case 'paused':
        expect({ ...facts, ...model.get(sandboxId) }).toMatchObject({
          executionId: state.record.executionId,
          state: 'paused',
        });
        expect({ ...facts, processes: own.map(processes => processes.state) }).toEqual({
          ...facts,
          processes: state.kind === 'frozen' ? ['frozen'] : [],
        });
        expect({ ...facts, state: note?.state }).toEqual({ ...facts, state: 'paused' });
        break;
      default:
        // The next kill repeats a failed removal; until then, nothing is required of what is left.
        expect({ ...facts, note }).toEqual({ ...facts, note: undefined });
        if (state === undefined) expect({ ...facts, left: own.length }).toEqual({ ...facts, left: 0 });
    }
  }
}

function createRequest(sandboxId: string, executionId: string): CreateSandbox {
  return {
    sandboxId,
    executionId,
    image: { templateId: 't', buildId: 'b', layers: [], defaultUser: 'user', defaultWorkdir: '', buildEnv: {} },
    resources: { cpuCount: 1, memoryMiB: 1, diskMiB: 1 },
    network: { internetAccess: true },
    envVars: {},
    accessToken: null,
  };
}

function resumeRequest(target: ExecutionRef, nextExecutionId: string): ResumeSandbox {
  return {
    ...target,
    nextExecutionId,
    memory: true,
    network: { internetAccess: true },
    envVars: {},
    accessToken: null,
  };
}
