import { afterAll, expect, test } from 'bun:test';
import { SingleFlight } from '../../../../base/concurrency/single-flight.ts';
import { AtollError } from '../../../../base/error.ts';
import { newSandboxId } from '../../../../base/id.ts';
import { silentLog } from '../../../../base/telemetry/log.ts';
import type { ExecutionRef, MemoryAbility, NodeProtocol } from '../../../../protocol/node.ts';
import type { DurablePauses } from '../../../blob/rules/pauses.ts';
import { openStore } from '../../../database/database.ts';
import { createIdentity } from '../../../identity/rules/identity.ts';
import { createMeasures } from '../../../metrics/measures.ts';
import { singleNode } from '../../../placement/nodes.ts';
import { createTeam } from '../../../team/rules/provision-team.ts';
import { SandboxDirectory } from '../../directory/directory.ts';
import { defaultOptions, type SandboxRecord } from '../../record.ts';
import { BusyExecutions } from '../../rules/busy.ts';
import { pauseNotStored } from '../../rules/durability.ts';
import { memoryUnavailable } from '../../rules/memory.ts';
import { insertSandbox } from '../../store/create.ts';
import { findSandboxOfAnyTeam } from '../../store/read.ts';
import { type PauseDeps, pauseRunning, pauseSandbox } from './pause.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const nowUs = 1e15;
const clock = () => nowUs;
const made = await createTeam({ db, clock }, { name: 'T', slug: 't' });
const seed = new Uint8Array(32).fill(1);
const identity = createIdentity({ seed, issuer: 'https://api.example.org', domain: 'example.org', clock });

type Scene = {
  change?: Partial<SandboxRecord>;
  usual?: 'node' | 'cluster';
  ability?: () => Promise<MemoryAbility>;
  /** Runs, or fails, while the node pauses it. */
  pausing?: (has: { state: 'running' | 'paused' | 'gone' }) => Promise<void>;
  /** Null: there is no store. */
  storing?: (() => Promise<void>) | null;
  isUsable?: boolean;
};

/** A running sandbox, on a machine that can pause it. */
async function scene({ change = {}, usual = 'node', ability, pausing, storing = null, isUsable = true }: Scene = {}) {
  const sandboxId = newSandboxId();
  const team = { ...made, pauseDurability: usual };
  const asked: unknown[] = [];
  const stored: string[] = [];
  const has: { state: 'running' | 'paused' | 'gone' } = { state: 'running' };
  const inState = async (state: string) => {
    const row = await findSandboxOfAnyTeam(db, sandboxId);
    return has.state === state && row ? [{ sandboxId, executionId: row.executionId }] : [];
  };
  const node = {
    memoryAbility: ability ?? (async () => ({ kept: true })),
    async pause(target: ExecutionRef, options: { memory: boolean }) {
      asked.push(options);
      await pausing?.(has);
      has.state = 'paused';
      return { ...target, kept: options.memory ? 'memory' : 'filesystem', pausedAtMs: 1 };
    },
    list: () => inState('running'),
    listPaused: async () => (await inState('paused')).map(ref => ({ ...ref, kept: 'memory', pausedAtMs: 1 })),
    listSetAside: async () => [],
    updateNetwork: async () => {},
  } as unknown as NodeProtocol;
  const durablePauses = {
    isUsable,
    requireUsable() {
      if (!isUsable) throw new AtollError('unavailable', 'the store is away');
    },
    async store({ executionId }: ExecutionRef) {
      stored.push(executionId);
      await storing?.();
    },
  } as unknown as DurablePauses;
  const directory = new SandboxDirectory(() => ({ accessToken: null, trafficToken: null }));
  const deps: PauseDeps = {
    ...{ clock, db, directory, seed, identity, log: silentLog, nodes: singleNode('n', node) },
    ...{ busy: new BusyExecutions('here'), measures: createMeasures(), resuming: new SingleFlight() },
    durablePauses: storing ? durablePauses : null,
  };
  const sandbox: SandboxRecord = {
    ...{ ...defaultOptions, sandboxId, executionId: `${sandboxId}/1`, teamId: team.teamId, nodeId: 'n' },
    ...{ state: 'running', templateId: 't', buildId: 'b', alias: null, agentVersion: '1', cpuCount: 1, memoryMiB: 1 },
    ...{ diskMiB: 1, createdAtUs: 1, startedAtUs: 1, endAtUs: nowUs, timeoutSeconds: 60, secure: true, kept: null },
    ...{ volumeMounts: [], agentUnresponsive: false, durability: null, nextExecutionId: null, nextNodeId: null },
    replicaId: null,
    ...change,
  };
  // Its volume need not exist.
  const { volumeMounts } = sandbox;
  const limits = { concurrentSandboxes: 999, sandboxes: 999 };
  expect(await insertSandbox(db, { ...sandbox, volumeMounts: [] }, limits)).toBe('inserted');
  const set = (changed: object) =>
    db.updateTable('sandboxes').set(changed).where('sandbox_id', '=', sandboxId).execute();
  await set({ volume_mounts_json: JSON.stringify(volumeMounts) });
  directory.apply(sandbox);
  // No edge follows it, so there are no connections to cut.
  directory.edgeGone();
  const pause = (options: Partial<Parameters<typeof pauseSandbox>[3]> = {}) =>
    pauseSandbox(deps, team, sandboxId, { memory: true, durability: null, ...options });
  const row = () => findSandboxOfAnyTeam(db, sandboxId);
  return {
    sandbox,
    deps,
    asked,
    stored,
    has,
    directory,
    pause,
    row,
    set,
    shown: () => directory.find(sandboxId)?.state,
  };
}

const paused = { state: 'paused', kept: 'memory', durability: 'node' } as const;
const volumeMounts = [{ volumeId: 'v', name: 'v', path: '/v' }];
const notStored = { code: 'unavailable', detail: pauseNotStored };

test('a sandbox is paused with what it should keep', async () => {
  const cases: [object, object, object][] = [
    [{}, { memory: true, noteAgent: true }, paused],
    [{ memory: false }, { memory: false }, { ...paused, kept: 'filesystem' }],
    [{ requireAgent: true }, { memory: true, noteAgent: true, requireAgent: true }, paused],
  ];
  for (const [options, told, kept] of cases) {
    const { pause, asked, row, shown, stored } = await scene();
    expect(await pause(options)).toMatchObject({ ...kept, endAtUs: nowUs, replicaId: null });
    expect([asked, stored, shown()]).toEqual([[told], [], 'paused']);
    expect(await row()).toMatchObject(kept);
  }
});

test('a sandbox whose memory can’t be kept runs on', async () => {
  const { pause, asked, row } = await scene({ ability: async () => ({ kept: false, reason: 'no CRIU' }) });
  await expect(pause()).rejects.toMatchObject({
    code: 'precondition',
    message: expect.stringContaining('memory: false keeps the files'),
  });
  expect([(await row())?.state, asked]).toEqual(['running', []]);
  await pause({ memory: false });
  expect((await row())?.state).toBe('paused');
});

test('a failure of the node is reported, and the sandbox runs on, or is gone', async () => {
  const failing = (error: Error, state: 'running' | 'gone' = 'running') =>
    scene({
      async pausing(has) {
        has.state = state;
        throw error;
      },
    });
  const cases: [Error, object][] = [
    [new AtollError('precondition', 'a GPU'), { code: 'precondition', message: 'a GPU', detail: memoryUnavailable }],
    [
      new AtollError('no_space', 'the disk is full'),
      { code: 'no_space', message: expect.stringMatching(/^The sandbox runs on: .*\(the disk is full\)$/) },
    ],
    [new AtollError('unavailable', 'its agent does not answer'), { message: 'its agent does not answer' }],
    [new TypeError('a bug'), { message: 'a bug' }],
  ];
  for (const [error, told] of cases) {
    const { pause, row, shown } = await failing(error);
    await expect(pause()).rejects.toMatchObject(told);
    expect([(await row())?.state, shown()]).toEqual(['running', 'running']);
  }
  const { pause, row } = await failing(new AtollError('not_found', 'it is not here'), 'gone');
  await expect(pause()).rejects.toMatchObject({ code: 'conflict', message: 'The sandbox ended while it was paused' });
  expect(await row()).toBeNull();
});

test('a pause that should outlive its machine is in the store, or its error says that it is not', async () => {
  const good = await scene({ storing: async () => {} });
  expect(await good.pause({ durability: 'cluster' })).toMatchObject({ ...paused, durability: 'cluster' });
  expect(good.stored).toEqual([good.sandbox.executionId]);
  const fails = await scene({ storing: () => Promise.reject(new AtollError('unavailable', 'away')) });
  await expect(fails.pause({ durability: 'cluster' })).rejects.toMatchObject({ ...notStored, mayHaveChanged: true });
  expect(await fails.row()).toMatchObject(paused);
  const refused: [Scene, object][] = [
    [{}, { code: 'precondition', message: expect.stringContaining('durability: cluster needs a store') }],
    [
      { storing: async () => {}, isUsable: false },
      { ...notStored, message: expect.stringContaining('nothing was') },
    ],
    [{ storing: async () => {}, change: { volumeMounts } }, { code: 'precondition' }],
  ];
  for (const [options, told] of refused) {
    const { pause, row, asked } = await scene(options);
    await expect(pause({ durability: 'cluster' })).rejects.toMatchObject(told);
    expect([(await row())?.state, asked]).toEqual(['running', []]);
  }
});

test('the team’s default durability applies where possible, and otherwise the pause stays on its machine', async () => {
  const usual = 'cluster';
  const cases: [Scene, string, number][] = [
    [{ usual, storing: async () => {} }, 'cluster', 1],
    [{ usual, storing: async () => {}, isUsable: false }, 'node', 0],
    [{ usual, storing: () => Promise.reject(new Error('away')) }, 'node', 1],
    [{ usual, storing: async () => {}, change: { volumeMounts } }, 'node', 0],
    [{ storing: async () => {} }, 'node', 0],
  ];
  for (const [options, durability, tries] of cases) {
    const { pause, stored } = await scene(options);
    expect(await pause()).toMatchObject({ ...paused, durability: durability as 'node' });
    expect(stored).toHaveLength(tries);
  }
  const broken = await scene({ usual, storing: async () => {}, pausing: () => Promise.reject(new Error('a bug')) });
  await expect(broken.pause()).rejects.toThrow('a bug');
});

test('a sandbox that is paused on its machine can be put into the store', async () => {
  const cluster = { durability: 'cluster' } as const;
  const { pause, stored, row } = await scene({ change: paused, storing: async () => {} });
  for (let times = 0; times < 2; times++) expect(await pause(cluster)).toMatchObject({ ...paused, ...cluster });
  expect([stored.length, (await row())?.durability]).toEqual([1, 'cluster']);
  await expect(pause()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('is paused') });
  const fails = await scene({ change: paused, storing: () => Promise.reject(new Error('away')) });
  await expect(fails.pause(cluster)).rejects.toMatchObject(notStored);
  expect(await fails.row()).toMatchObject(paused);
  await expect((await scene({ change: paused })).pause(cluster)).rejects.toMatchObject({ code: 'precondition' });
  // Somebody has resumed it meanwhile.
  const resumed = await scene({ change: paused, storing: () => resumed.set({ state: 'resuming' }).then(() => {}) });
  await expect(resumed.pause(cluster)).rejects.toMatchObject({ code: 'conflict' });
});

test('a pause waits for a transition, and gives up on one that changes again and again', async () => {
  const { pause, set } = await scene({ change: { state: 'snapshotting' } });
  const asked = pause();
  await set({ state: 'running' });
  expect(await asked).toMatchObject(paused);
  let times = 0;
  const moving = await scene({
    async ability() {
      await moving.set({ execution_id: `another ${++times} of ${moving.sandbox.sandboxId}` });
      return { kept: true };
    },
  });
  await expect(moving.pause()).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('is changing its state: ask again'),
  });
  expect([times, moving.asked]).toEqual([3, []]);
});

test('the clock does not pause a sandbox whose time is not over, or that does not run', async () => {
  const { deps, sandbox, row } = await scene({ change: { endAtUs: nowUs } });
  expect(await pauseRunning(deps, sandbox, { memory: true }, nowUs - 1)).toBeNull();
  expect((await row())?.state).toBe('running');
  expect(await pauseRunning(deps, sandbox, { memory: false }, nowUs)).toMatchObject({ ...paused, kept: 'filesystem' });
  expect(await pauseRunning(deps, sandbox, { memory: true })).toBeNull();
  expect(deps.busy.has(sandbox.executionId)).toBe(false);
});
