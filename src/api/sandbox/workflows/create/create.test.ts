import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../../base/error.ts';
import { newUuid } from '../../../../base/id.ts';
import { silentLog } from '../../../../base/telemetry/log.ts';
import { serverFailure } from '../../../../protocol/template/server-failure.ts';
import { volumeChanged } from '../../../../protocol/volume.ts';
import { nodeFull } from '../../../../protocol/no-room.ts';
import { lost } from '../../../../protocol/part-lost.ts';
import type { CreateSandbox, ExecutionRef, MemoryAbility, NodeInfo, NodeProtocol } from '../../../../protocol/node.ts';
import type { DurablePauses } from '../../../blob/rules/pauses.ts';
import type { BuildConfig } from '../../../build/record.ts';
import { AwaitedBuilds } from '../../../build/rules/awaited.ts';
import { registerBuild } from '../../../build/rules/register.ts';
import { moveBuild, publishBuild } from '../../../build/store/write.ts';
import { openStore } from '../../../database/database.ts';
import { createIdentity } from '../../../identity/rules/identity.ts';
import { createMeasures } from '../../../metrics/measures.ts';
import { StartCounts } from '../../../metrics/start-counts.ts';
import { CreateCounts } from '../../../placement/create-counts.ts';
import { noCompatibleNode, type Nodes } from '../../../placement/nodes.ts';
import type { TeamLimits } from '../../../team/record.ts';
import { limitsFrom } from '../../../team/rules/limits.ts';
import { createTeam } from '../../../team/rules/provision-team.ts';
import { insertVolume } from '../../../volume/store/volumes.ts';
import { SandboxDirectory } from '../../directory/directory.ts';
import { noFeatures } from '../../features.ts';
import { defaultOptions, type SandboxOptions } from '../../record.ts';
import { BusyExecutions } from '../../rules/busy.ts';
import { findKey } from '../../store/idempotency.ts';
import { findSandboxOfAnyTeam } from '../../store/read.ts';
import { type CreateDeps, createSandbox, explainFailedStart } from './create.ts';
import { restoreFailed } from '../resume/resume.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const nowUs = 1e15;
const clock = () => nowUs;
const seed = new Uint8Array(32).fill(1);
const identity = createIdentity({ seed, issuer: 'https://api.example.org', domain: 'example.org', clock });

type Scene = {
  limits?: Partial<TeamLimits>;
  size?: { cpuCount: number; memoryMiB: number };
  config?: Partial<BuildConfig>;
  changed?: Partial<CreateDeps>;
  memory?: MemoryAbility;
  machines?: string[];
  /** Runs while a machine is asked about itself. */
  info?: () => Promise<void>;
  /** What a machine does when it is asked for a sandbox. */
  create?: (nodeId: string, request: CreateSandbox) => Promise<void>;
};

/** A team with the template `base`, and machines. */
async function scene(options: Scene = {}) {
  const { limits = {}, size, config = {}, changed = {}, memory = { kept: true }, machines = ['a'] } = options;
  const team = await createTeam({ db, clock }, { name: 'T', slug: `t${newUuid().slice(0, 8)}` });
  const build = { clock, db, limitsOf: limitsFrom({ cpuCount: 32, memoryMiB: 99_999, diskMiB: 99_999 }) };
  const { buildId, template } = await registerBuild(build, team, { name: 'base', ...size });
  await moveBuild(db, buildId, 'waiting', 'building', 1);
  const made = { defaultUser: 'me', defaultWorkdir: '/w', buildEnv: {}, ...config };
  await publishBuild(db, buildId, { layers: ['l'], config: made, agentVersion: '1', diskMiB: 512 }, 1);
  const created: (CreateSandbox & { nodeId: string })[] = [];
  const told: string[] = [];
  const list = machines.map(nodeId => {
    const info = { nodeId, cpuCount: 64, memoryBytes: 2 ** 36, sandboxCount: 0, sandboxesMax: 99, driver: 'crun' };
    const all = { ...info, memory, memoryByDriver: { crun: memory } } as NodeInfo;
    const protocol = {
      info: async () => (await options.info?.(), all),
      async create(request: CreateSandbox) {
        created.push({ nodeId, ...request });
        await options.create?.(nodeId, request);
      },
      kill: async (_: ExecutionRef) => void told.push(`kill on ${nodeId}`),
    } as unknown as NodeProtocol;
    return { nodeId, protocol, info: all };
  });
  const nodes: Nodes = {
    list: () => list,
    get: nodeId => list.find(node => node.nodeId === nodeId)?.protocol ?? ({} as NodeProtocol),
  };
  const directory = new SandboxDirectory(() => ({ accessToken: null, trafficToken: null }));
  const deps: CreateDeps = {
    ...{ clock, db, directory, nodes, seed, identity, log: silentLog, limitsOf: limitsFrom(limits) },
    ...{ busy: new BusyExecutions('here'), measures: createMeasures(), startCounts: new StartCounts() },
    ...{ awaitedBuilds: new AwaitedBuilds(), createCounts: new CreateCounts(), durablePauses: null },
    ...{ durableSnapshots: null, features: { ...noFeatures, volumes: true }, requireSecure: false },
    templateDrivers: new Map(),
    ...changed,
  };
  const client = new AbortController();
  type Asked = Partial<SandboxOptions> & {
    volumes?: { name: string; path: string }[];
    isUsual?: boolean;
    key?: string;
  };
  const create = ({ volumes = [], isUsual, key, ...asked }: Asked = {}) =>
    createSandbox(
      deps,
      team,
      {
        ...{ template: 'base', volumeMounts: volumes, ...(isUsual !== undefined && { isDurabilityUsual: isUsual }) },
        options: { ...defaultOptions, timeoutSeconds: 60, secure: true, ...asked },
      },
      client.signal,
      key === undefined ? undefined : { key, requestDigest: 'd' },
    );
  const rows = async () => db.selectFrom('sandboxes').select('sandbox_id').where('team_id', '=', team.teamId).execute();
  const volume = (name: string, nodeId: string) =>
    insertVolume(db, { volumeId: newUuid(), teamId: team.teamId, nodeId, name, sizeMiB: 1, createdAtUs: 1 }, 99);
  return { team, template, buildId, created, told, directory, deps, client, create, rows, volume };
}

const full = (nodeId: string) => new AtollError('unavailable', `${nodeId} is full`, { detail: nodeFull });

test('a sandbox runs on its machine, in the database and for the edge', async () => {
  const { create, created, directory, deps, team, template, buildId, told } = await scene();
  const sandbox = await create({ envVars: { A: 'b' } });
  expect(sandbox).toMatchObject({
    ...{ state: 'running', nodeId: 'a', templateId: template.templateId, buildId, alias: 'base', agentVersion: '1' },
    ...{ startedAtUs: nowUs, endAtUs: nowUs + 60e6, cpuCount: 2, memoryMiB: 1024, diskMiB: 512, replicaId: null },
  });
  expect(await findSandboxOfAnyTeam(db, sandbox.sandboxId)).toEqual(sandbox);
  expect(created).toMatchObject([
    {
      ...{ sandboxId: sandbox.sandboxId, resources: { cpuCount: 2, memoryMiB: 1024, diskMiB: 512 }, volumes: [] },
      envVars: { A: 'b', E2B_SANDBOX_ID: sandbox.sandboxId },
      image: { templateId: template.templateId, buildId, layers: ['l'], defaultUser: 'me', defaultWorkdir: '/w' },
    },
  ]);
  expect(created[0]?.image).not.toHaveProperty('driver');
  expect([directory.find(sandbox.sandboxId)?.state, told]).toEqual(['running', []]);
  expect(deps.createCounts.of('a')).toEqual({ successes: 1, fails: 0 });
  expect(deps.startCounts.take()).toEqual(new Map([[team.teamId, 1]]));
});

test('a node gets what a snapshot needs, and not what only control knows', async () => {
  const config = { driver: 'crun' as const, memorySnapshotId: 's', memoryNodeId: 'b', startCommand: 'x' };
  const { create, created } = await scene({ config, machines: ['a', 'b'] });
  for (let times = 0; times < 5; times++) expect((await create()).nodeId).toBe('b');
  expect(created[0]?.image).toMatchObject({ driver: 'crun', memorySnapshotId: 's', startCommand: 'x' });
  expect(created[0]?.image).not.toHaveProperty('memoryNodeId');
});

test('an invalid request is refused before anything is done', async () => {
  const large = { limits: { cpuCount: 4, memoryMiB: 2048, diskMiB: 500 }, size: { cpuCount: 4, memoryMiB: 2048 } };
  const cases: [Scene, Partial<SandboxOptions>, string][] = [
    [{ changed: { requireSecure: true } }, { secure: false }, 'secure: must be true'],
    [{}, { timeoutSeconds: 90_000 }, 'timeout: 90000 seconds'],
    [large, {}, 'sandboxes of this template have 512 MiB of disk, and the team may use up to 500'],
    [{ ...large, limits: { cpuCount: 2 } }, {}, 'have 4 cores of CPU, and the team may use up to 2'],
    [{ ...large, limits: { memoryMiB: 1024 } }, {}, 'have 2048 MiB of memory, and the team may use up to 1024'],
    [{}, { autoPause: true, autoPauseDurability: 'cluster' }, 'autoPauseDurability: cluster needs a store'],
  ];
  for (const [options, asked, says] of cases) {
    const { create, created, rows } = await scene(options);
    await expect(create(asked)).rejects.toThrow(says);
    expect([created, await rows()]).toEqual([[], []]);
  }
  // As much as the team may use is not too much, and a request that says it is secure is admitted.
  const { create } = await scene({
    ...large,
    limits: { ...large.limits, diskMiB: 512 },
    changed: { requireSecure: true },
  });
  await create();
});

test('a sandbox that should keep its memory needs a machine that can do so', async () => {
  const { create } = await scene({ memory: { kept: false, reason: 'no CRIU' } });
  await expect(create({ autoPause: true })).rejects.toMatchObject({
    code: 'precondition',
    message: expect.stringContaining('autoPause: the memory of sandboxes can'),
  });
  await create({ autoPause: true, autoPauseMemory: false });
  await create();
});

test('an automatic pause survives what the request asks for, or what the team’s default says', async () => {
  const durablePauses = {} as DurablePauses;
  const { create, team, volume } = await scene({ changed: { durablePauses } });
  expect((await create({ autoPause: true, autoPauseDurability: 'cluster' })).autoPauseDurability).toBe('cluster');
  team.pauseDurability = 'cluster';
  expect((await create()).autoPauseDurability).toBe('node');
  expect((await create({ isUsual: true })).autoPauseDurability).toBe('cluster');
  await volume('data', 'a');
  const volumes = [{ name: 'data', path: '/data' }];
  await expect(create({ autoPause: true, autoPauseDurability: 'cluster', volumes })).rejects.toThrow(
    'a sandbox with volumes stays',
  );
  expect((await create({ isUsual: true, volumes })).autoPauseDurability).toBe('node');
});

test('a sandbox is placed where its volumes are, and has them', async () => {
  const { create, created, volume } = await scene({ machines: ['a', 'b', 'c'] });
  await volume('data', 'b');
  for (let times = 0; times < 5; times++) {
    const sandbox = await create({ volumes: [{ name: 'data', path: '/data' }] });
    expect(sandbox).toMatchObject({ nodeId: 'b', volumeMounts: [{ name: 'data', path: '/data' }] });
    expect(created.at(-1)?.volumes).toEqual([{ volumeId: sandbox.volumeMounts[0]?.volumeId ?? '', path: '/data' }]);
  }
});

test('if a machine has no room another one is asked, each once', async () => {
  const create = async (nodeId: string) => {
    if (nodeId === 'a') throw full(nodeId);
  };
  const some = await scene({ machines: ['a', 'b'], create });
  for (let times = 0; times < 8; times++) expect((await some.create()).nodeId).toBe('b');
  expect(await some.rows()).toHaveLength(8);
  // A caller who got a sandbox on another machine was not told of a failure.
  expect(['a', 'b'].map(nodeId => some.deps.createCounts.of(nodeId))).toEqual([
    { successes: 0, fails: 0 },
    { successes: 8, fails: 0 },
  ]);
  expect(some.deps.measures.recent.creates(Date.now())).toMatchObject({ succeeded: 8, failed: 0 });
  const none = await scene({ machines: ['a', 'b'], create: nodeId => Promise.reject(full(nodeId)) });
  await expect(none.create()).rejects.toMatchObject({ code: 'unavailable', detail: nodeFull });
  expect(none.created.map(({ nodeId }) => nodeId).toSorted()).toEqual(['a', 'b']);
  expect([await none.rows(), none.told.toSorted()]).toEqual([[], ['kill on a', 'kill on b']]);
  // A single machine is not asked again, and an error other than a lack of room is not tried on another one.
  const alone = await scene({ create: nodeId => Promise.reject(full(nodeId)) });
  await expect(alone.create()).rejects.toMatchObject({
    detail: nodeFull,
    message: expect.stringContaining('a is full'),
  });
  expect(alone.created).toHaveLength(1);
  const failing = serverFailure(new Error('the start command failed: exit status 1'));
  const failed = await scene({ machines: ['a', 'b'], create: () => Promise.reject(failing) });
  await expect(failed.create()).rejects.toMatchObject({ code: 'unavailable', detail: 'template_start_failed' });
  expect(failed.created).toHaveLength(1);
  const broken = await scene({ machines: ['a', 'b'], create: () => Promise.reject(new AtollError('internal', 'x')) });
  await expect(broken.create()).rejects.toMatchObject({ detail: 'sandbox_create_failed' });
  expect(broken.created).toHaveLength(1);
});

test('a failure leaves nothing behind, and counts against its machine if that is at fault', async () => {
  const cases: [AtollError, { successes: number; fails: number }][] = [
    [new AtollError('internal', 'broken'), { successes: 0, fails: 1 }],
    [new AtollError('invalid', 'not so'), { successes: 0, fails: 0 }],
  ];
  for (const [error, counts] of cases) {
    const { create, rows, told, deps, directory, team } = await scene({ create: () => Promise.reject(error) });
    await expect(create({ key: 'k' })).rejects.toThrow();
    expect([await rows(), told, directory.size]).toEqual([[], ['kill on a'], 0]);
    expect(deps.createCounts.of('a')).toEqual(counts);
    expect([deps.startCounts.take().size, await findKey(db, team.teamId, 'k')]).toEqual([0, null]);
  }
});

test('a client that gives up leaves no unknown sandbox', async () => {
  const it = await scene({ create: async () => it.client.abort() });
  await expect(it.create()).rejects.toMatchObject({ code: 'canceled' });
  expect([await it.rows(), it.told, it.directory.size]).toEqual([[], ['kill on a'], 0]);
});

test('a sandbox that ends while it starts has failed to start', async () => {
  const it = await scene({
    async create(_, { sandboxId }) {
      await db.deleteFrom('sandboxes').where('sandbox_id', '=', sandboxId).execute();
    },
  });
  await expect(it.create()).rejects.toMatchObject({ code: 'internal', detail: 'sandbox_create_failed' });
  expect(it.told).toEqual(['kill on a']);
});

test('a team has its maximum of sandboxes, and a repeated request its own', async () => {
  const refused = (says: string) => ({ code: 'rate_limited', message: expect.stringContaining(says) });
  const running = await scene({ limits: { concurrentSandboxes: 1 } });
  const first = await running.create({ key: 'k' });
  expect(await findKey(db, running.team.teamId, 'k')).toMatchObject({
    outcome: { answer: { sandboxId: first.sandboxId } },
  });
  await expect(running.create()).rejects.toMatchObject(refused('The team has 1 sandbox running'));
  const kept = await scene({ limits: { sandboxes: 1 } });
  await kept.create({ key: 'k' });
  await expect(kept.create()).rejects.toMatchObject(refused('The team has 1 sandbox, running and paused'));
  const repeated = await scene();
  await repeated.create({ key: 'k' });
  await expect(repeated.create({ key: 'k' })).rejects.toMatchObject({ code: 'conflict' });
  expect(await repeated.rows()).toHaveLength(1);
});

test('a volume that is deleted or moves while a machine is asked is reported', async () => {
  for (const [set, says] of [
    [null, 'volumeMounts: a volume was deleted at this moment'],
    [{ moving_to: 'b' }, 'A volume goes to another machine now'],
  ] as const) {
    const it = await scene({
      async info() {
        const { teamId } = it.team;
        if (set) await db.updateTable('volumes').set(set).where('team_id', '=', teamId).execute();
        else await db.deleteFrom('volumes').where('team_id', '=', teamId).execute();
      },
    });
    await it.volume('data', 'a');
    const asked = it.create({ autoPause: true, volumes: [{ name: 'data', path: '/data' }] });
    await expect(asked).rejects.toThrow(says);
    expect([it.created, await it.rows()]).toEqual([[], []]);
  }
});

test('what a failed start means to the caller', () => {
  const never = new AbortController().signal;
  const explain = (error: unknown, client = never, deadline = never) => explainFailedStart(error, client, deadline);
  const aborted = AbortSignal.abort();
  const cause = new AtollError('internal', 'its own words');
  expect(explain(cause, aborted, aborted)).toMatchObject({ code: 'canceled', cause });
  expect(explain(cause, never, aborted)).toMatchObject({
    code: 'deadline_exceeded',
    detail: 'sandbox_placement_timeout',
  });
  const failed = { code: 'internal', message: 'The sandbox could not be started', detail: 'sandbox_create_failed' };
  for (const error of [
    cause,
    new Error('a bug'),
    new AtollError('not_found', 'a layer is gone'),
    new AtollError('unavailable', 'memory is broken', { detail: restoreFailed }),
  ])
    expect(explain(error)).toMatchObject({ ...failed, cause: error });
  for (const error of [
    new AtollError('invalid', 'not so'),
    lost('node', 'is away'),
    new AtollError('unavailable', 'the database went away', { mayHaveChanged: true }),
    new AtollError('unavailable', 'its machine is away', { detail: noCompatibleNode }),
    serverFailure(new Error('the start command failed: exit status 1')),
  ])
    expect(explain(error)).toBe(error);
  expect(explain(new AtollError('conflict', 'data/log is gone', { detail: volumeChanged }))).toMatchObject({
    ...{ code: 'conflict', detail: volumeChanged },
    message: "The sandbox can't begin with the memory of its snapshot: data/log is gone",
  });
  const noRoom = 'There is no room for another sandbox now; nothing was changed';
  expect(explain(new AtollError('unavailable', 'no slot'))).toMatchObject({ message: noRoom, detail: nodeFull });
  expect(explain(new AtollError('no_space', 'no disk', { detail: 'other' }))).toMatchObject({
    ...{ code: 'unavailable', message: noRoom, detail: 'other' },
  });
  expect(explain(full('a'))).toMatchObject({ message: `${noRoom} (a is full)`, detail: nodeFull });
});
