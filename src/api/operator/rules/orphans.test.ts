import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import type { ExecutionRef, NodeProtocol, SetAsideSandbox } from '../../../protocol/node.ts';
import type { NodeVolume } from '../../../protocol/volume.ts';
import { putClusterNode } from '../../cluster/store/nodes.ts';
import { openStore } from '../../database/database.ts';
import { findInstallation, putInstallation } from '../../database/installation.ts';
import type { Nodes } from '../../placement/nodes.ts';
import { SandboxDirectory } from '../../sandbox/directory/directory.ts';
import { defaultOptions, type SandboxRecord } from '../../sandbox/record.ts';
import { insertSandbox } from '../../sandbox/store/create.ts';
import { findSandboxOfAnyTeam } from '../../sandbox/store/read.ts';
import { limitsFrom } from '../../team/rules/limits.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { recordVolumeRemoval, volumeRemovalsOn } from '../../volume/store/removals.ts';
import { findVolume, insertVolume } from '../../volume/store/volumes.ts';
import { adoptSandbox, adoptVolume, discardSandbox, discardVolume, forgetUnknown, listOrphans } from './orphans.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());

/** A machine that has one unknown sandbox and one unknown volume, or does not answer. */
function machine(nodeId: string, answering: (nodeId: string) => Promise<void>) {
  const volumes = {
    list: async () => (await answering(nodeId), [{ volumeId: `volume-${nodeId}`, createdAtMs: 0, sizeMiB: 1 }]),
  };
  const listSetAside = async () => (
    await answering(nodeId),
    [{ sandboxId: `sandbox-${nodeId}`, known: null, sinceMs: 0, reason: 'unknown' }]
  );
  return { nodeId, protocol: { listSetAside, volumes } as unknown as NodeProtocol };
}

const ids = ['a', 'b', 'c', 'd'];
const depsOf = (answering: (nodeId: string) => Promise<void>, away: string[] = []) => ({
  clock: () => 1e15,
  db,
  nodes: {
    list: () => ids.map(id => machine(id, answering)),
    get: () => Promise.reject(new Error('nobody is asked')) as never,
    away: () => away.map(nodeId => ({ nodeId, isConnecting: false, sinceUs: 0, info: null })),
  },
});

test('machines are asked in parallel, and what they keep is listed in their order', async () => {
  const all = Promise.withResolvers<void>();
  let asked = 0;
  const found = await listOrphans(
    depsOf(async nodeId => {
      if (++asked === ids.length) all.resolve();
      await all.promise;
      await Bun.sleep(nodeId === 'a' ? 5 : 0);
    }),
  );
  expect(found.sandboxes.map(({ sandboxId }) => sandboxId)).toEqual(ids.map(id => `sandbox-${id}`));
  expect(found.volumes.map(({ volumeId }) => volumeId)).toEqual(ids.map(id => `volume-${id}`));
  expect(found.unanswered).toEqual([]);
});

test('a machine that does not answer, or is away, is reported, and the others are listed', async () => {
  const deps = depsOf(
    async nodeId => {
      if (nodeId === 'b') throw new AtollError('unavailable', 'the machine does not answer');
    },
    ['away'],
  );
  const { sandboxes, volumes, unanswered } = await listOrphans(deps);
  expect(sandboxes.map(({ nodeId }) => nodeId)).toEqual(['a', 'c', 'd']);
  expect(volumes.map(({ nodeId }) => nodeId)).toEqual(['a', 'c', 'd']);
  expect(unanswered).toEqual(['away', 'b']);
  // What was not found may still be there.
  const refusal = { code: 'unavailable', message: expect.stringContaining('away, b') };
  await expect(discardSandbox(deps, 'sandbox-b')).rejects.toMatchObject(refusal);
  await expect(discardVolume(deps, 'volume-b')).rejects.toMatchObject(refusal);
});

test('what no machine has is not found, if all have answered', async () => {
  const deps = { ...depsOf(async () => {}), limitsOf: () => ({}) as never };
  await expect(discardSandbox(deps, 'none')).rejects.toMatchObject({ code: 'not_found' });
  await expect(adoptVolume(deps, {} as never, 'none', 'name')).rejects.toMatchObject({ code: 'not_found' });
});

const nowUs = 1e15;
const mine = await createTeam({ db, clock: () => nowUs }, { name: 'Mine', slug: 'mine' });
const theirs = await createTeam({ db, clock: () => nowUs }, { name: 'Theirs', slug: 'theirs' });

/** A machine with what the test puts there; `told` records what it is told. */
function keeper(told: string[]) {
  const it = {
    setAside: [] as SetAsideSandbox[],
    volumes: [] as NodeVolume[],
    running: [] as ExecutionRef[],
    paused: [] as ExecutionRef[],
  };
  const protocol = {
    listSetAside: async () => it.setAside,
    list: async () => it.running,
    listPaused: async () => it.paused,
    takeBack: async ({ executionId }: ExecutionRef) => void told.push(`take back ${executionId}`),
    setAside: async ({ executionId }: ExecutionRef, reason: string) =>
      void told.push(`set ${executionId} aside: ${reason}`),
    removeSetAside: async (sandboxId: string) => void told.push(`remove ${sandboxId}`),
    volumes: { list: async () => it.volumes, remove: async (volumeId: string) => void told.push(`remove ${volumeId}`) },
  };
  return { it, protocol: protocol as unknown as NodeProtocol };
}

/** The machines `a` and `b`; `a` has set aside a sandbox that was `executionId`. */
function scene({ isCluster = false } = {}) {
  const told: string[] = [];
  const [a, b] = [keeper(told), keeper(told)];
  const [sandboxId, executionId] = [newUuid(), newUuid()];
  const list = [
    { nodeId: 'a', protocol: a.protocol },
    { nodeId: 'b', protocol: b.protocol },
  ];
  const known = {
    ...{ executionId, kept: 'memory' as const, image: { templateId: 't', buildId: 'b' } },
    resources: { cpuCount: 2, memoryMiB: 512, diskMiB: 1024 },
    ...{ volumes: [] as { volumeId: string; path: string }[], startedAtMs: nowUs / 1000 - 5 },
  };
  const aside: SetAsideSandbox = { sandboxId, known, sinceMs: 0, reason: 'nobody knew it' };
  a.it.setAside.push(aside);
  const nodes: Nodes = {
    list: () => list,
    get(nodeId) {
      const one = list.find(node => node.nodeId === nodeId);
      if (one) return one.protocol;
      throw new AtollError('unavailable', `node ${nodeId} is not connected`);
    },
    ...(isCluster && { away: () => [] }),
  };
  const directory = new SandboxDirectory(() => ({ accessToken: null, trafficToken: null }));
  const deps = { clock: () => nowUs, db, nodes, directory };
  const row = (change: Partial<SandboxRecord> = {}): SandboxRecord => ({
    ...{ ...defaultOptions, sandboxId, executionId: `before ${executionId}`, teamId: mine.teamId, nodeId: 'b' },
    ...{ state: 'running', templateId: 't', buildId: 'b', alias: null, agentVersion: '1', cpuCount: 1, memoryMiB: 512 },
    ...{ diskMiB: 512, createdAtUs: 1, startedAtUs: 1, endAtUs: 1, timeoutSeconds: 1, secure: true, volumeMounts: [] },
    ...{ kept: null, agentUnresponsive: false, durability: null, nextExecutionId: null, nextNodeId: null },
    replicaId: null,
    ...change,
  });
  const insert = async (change: Partial<SandboxRecord> = {}) => {
    const limits = { concurrentSandboxes: 100, sandboxes: 100 };
    expect(await insertSandbox(db, row(change), limits)).toBe('inserted');
  };
  const stored = () => findSandboxOfAnyTeam(db, sandboxId);
  return { a: a.it, b: b.it, told, sandboxId, executionId, known, aside, deps, insert, stored, directory };
}

const elsewhere = { code: 'conflict', message: expect.stringContaining('what was set aside is of another time') };

test('a sandbox that was set aside becomes a paused one of the team', async () => {
  const { deps, sandboxId, executionId, told, stored, directory, known } = scene();
  const taken = await adoptSandbox(deps, mine, sandboxId);
  expect(taken).toMatchObject({
    ...{ sandboxId, executionId, teamId: mine.teamId, nodeId: 'a', state: 'paused', kept: 'memory', durability: null },
    ...{ templateId: 't', buildId: 'b', cpuCount: 2, memoryMiB: 512, diskMiB: 1024, secure: true },
    ...{ createdAtUs: nowUs - 5000, startedAtUs: nowUs - 5000, endAtUs: nowUs },
  });
  expect(await stored()).toEqual(taken);
  expect([told, directory.knows(taken)]).toEqual([[`take back ${executionId}`], true]);
  // A machine whose clock is ahead can't tell when it began.
  const ahead = scene();
  ahead.known.startedAtMs = nowUs / 1000 + 60_000;
  expect(await adoptSandbox(ahead.deps, mine, ahead.sandboxId)).toMatchObject({ startedAtUs: nowUs });
  expect(known.volumes).toEqual([]);
});

test('a sandbox whose record can’t be read is not adopted, and its files are named', async () => {
  const { deps, sandboxId, told, aside } = scene();
  aside.known = null;
  await expect(adoptSandbox(deps, mine, sandboxId)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining(`can't be taken: nobody knew it. Its files are in node/sandboxes/${sandboxId}`),
  });
  expect(told).toEqual([]);
});

test('a sandbox that the database knows as another team’s is only for that team', async () => {
  const { deps, sandboxId, insert, told } = scene();
  await insert({ teamId: theirs.teamId });
  await expect(adoptSandbox(deps, mine, sandboxId)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining(`adopt it for team ${theirs.teamId}`),
  });
  expect(told).toEqual([]);
});

test('a sandbox whose row is of a lost execution goes on as the one that was set aside', async () => {
  const { deps, sandboxId, executionId, insert, stored, a, b } = scene();
  await insert({ nextExecutionId: 'next', nextNodeId: 'a', metadata: { kept: 'yes' } });
  // Other sandboxes there are not its executions.
  for (const { running, paused } of [a, b]) {
    running.push({ sandboxId: 'other', executionId: 'other' });
    paused.push({ sandboxId: 'other', executionId: 'other too' });
  }
  await adoptSandbox(deps, mine, sandboxId);
  expect(await stored()).toMatchObject({
    ...{ executionId, state: 'paused', nodeId: 'a', nextExecutionId: null, nextNodeId: null },
    metadata: { kept: 'yes' },
  });
});

for (const list of ['running', 'paused'] as const)
  test(`one whose row is of an execution that is ${list} somewhere is another one than was set aside`, async () => {
    const now = scene();
    await now.insert();
    now.b[list].push({ sandboxId: now.sandboxId, executionId: `before ${now.executionId}` });
    await expect(adoptSandbox(now.deps, mine, now.sandboxId)).rejects.toMatchObject(elsewhere);
    // Also on the machine where it is to go on.
    const next = scene();
    await next.insert({ nextExecutionId: 'next', nextNodeId: 'a' });
    next.a[list].push({ sandboxId: next.sandboxId, executionId: 'next' });
    await expect(adoptSandbox(next.deps, mine, next.sandboxId)).rejects.toMatchObject(elsewhere);
    expect([now.told, next.told]).toEqual([[], []]);
  });

test('a sandbox that is paused in the store exists', async () => {
  const stored = scene();
  await stored.insert({ state: 'paused', kept: 'memory', durability: 'cluster' });
  await expect(adoptSandbox(stored.deps, mine, stored.sandboxId)).rejects.toMatchObject(elsewhere);
  // On its machine alone it would be there, and a running sandbox is in no store.
  for (const change of [
    { state: 'paused', durability: 'node' },
    { state: 'running', durability: 'cluster' },
  ] as const) {
    const gone = scene();
    await gone.insert({ ...change, kept: 'memory' });
    expect(await adoptSandbox(gone.deps, mine, gone.sandboxId)).toMatchObject({ state: 'paused' });
  }
});

test('adoption waits for a machine that may have the sandbox, unless that is gone for good', async () => {
  const alone = scene();
  await alone.insert({ nodeId: 'an earlier name' });
  await adoptSandbox(alone.deps, mine, alone.sandboxId);
  const cluster = scene({ isCluster: true });
  await cluster.insert({ nodeId: 'c' });
  const joined = { nodeId: 'c', address: '192.0.2.1:1', certificates: [], renewAtUs: 0, joinedAtUs: 0 };
  expect(await putClusterNode(db, joined, null)).toBe(true);
  await expect(adoptSandbox(cluster.deps, mine, cluster.sandboxId)).rejects.toThrow('node c is not connected');
  expect(cluster.told).toEqual([]);
  await db.updateTable('cluster_nodes').set({ given_up: 1 }).where('node_id', '=', 'c').execute();
  expect(await adoptSandbox(cluster.deps, mine, cluster.sandboxId)).toMatchObject({ nodeId: 'a' });
});

test('its volumes are mounted under the team’s names for them', async () => {
  const { deps, sandboxId, known, told } = scene();
  const volumeId = newUuid();
  known.volumes.push({ volumeId, path: '/data' });
  const refused = { code: 'conflict', message: expect.stringContaining(`has the volume ${volumeId} mounted`) };
  await expect(adoptSandbox(deps, mine, sandboxId)).rejects.toMatchObject(refused);
  const made = { volumeId, nodeId: 'a', name: `of ${sandboxId}`, sizeMiB: 1, createdAtUs: 1 };
  await insertVolume(db, { ...made, teamId: theirs.teamId }, 100);
  await expect(adoptSandbox(deps, mine, sandboxId)).rejects.toMatchObject(refused);
  expect(told).toEqual([]);
  await db.deleteFrom('volumes').where('volume_id', '=', volumeId).execute();
  await insertVolume(db, { ...made, teamId: mine.teamId }, 100);
  expect((await adoptSandbox(deps, mine, sandboxId)).volumeMounts).toEqual([
    { volumeId, name: `of ${sandboxId}`, path: '/data' },
  ]);
});

test('a sandbox that somebody goes on with at the same moment is set aside again', async () => {
  const { deps, sandboxId, executionId, insert, told, a, directory } = scene();
  const node = deps.nodes.get('a');
  const takeBack = node.takeBack.bind(node);
  node.takeBack = async target => {
    await insert();
    return takeBack(target);
  };
  await expect(adoptSandbox(deps, mine, sandboxId)).rejects.toMatchObject(elsewhere);
  expect(told).toEqual([`take back ${executionId}`, `set ${executionId} aside: nobody knew it`]);
  expect([a.setAside.length, directory.size]).toEqual([1, 0]);
});

test('what was set aside is removed from the machine that has it', async () => {
  const { deps, sandboxId, told } = scene();
  await discardSandbox(deps, sandboxId);
  expect(told).toEqual([`remove ${sandboxId}`]);
});

test('a volume is unknown if it has no row, is not about to be removed, and is ten minutes old', async () => {
  const { deps, a, told } = scene();
  const tenMinutesMs = 600_000;
  const names = ['known', 'removed', 'coming', 'young', 'unknown'] as const;
  const [known, removed, coming, young, unknown] = names.map(name => `${name}-${newUuid()}`) as [string, ...string[]];
  const oldMs = nowUs / 1000 - tenMinutesMs - 1;
  for (const volumeId of [known, removed, coming, unknown].map(String))
    a.volumes.push({ volumeId, createdAtMs: oldMs });
  a.volumes.push({ volumeId: String(young), createdAtMs: oldMs + 1 });
  const made = { teamId: mine.teamId, sizeMiB: 1, createdAtUs: 1 };
  await insertVolume(db, { ...made, volumeId: known, nodeId: 'a', name: known }, 100);
  await insertVolume(db, { ...made, volumeId: String(coming), nodeId: 'b', name: String(coming) }, 100);
  await db.updateTable('volumes').set({ moving_to: 'a' }).where('volume_id', '=', String(coming)).execute();
  await recordVolumeRemoval(db, { volumeId: String(removed), nodeId: 'a' }, 1);
  const { volumes } = await listOrphans(deps);
  expect(volumes).toEqual([{ volumeId: String(unknown), createdAtMs: oldMs, nodeId: 'a' }]);

  await discardVolume(deps, String(unknown));
  expect(told).toEqual([`remove ${unknown}`]);
  await expect(discardVolume(deps, String(young))).rejects.toMatchObject({ code: 'not_found' });
});

test('a discarded volume is not removed a second time', async () => {
  const { deps, a } = scene();
  const volumeId = newUuid();
  a.volumes.push({ volumeId, createdAtMs: 0 });
  const node = deps.nodes.get('a');
  // Another process records it during the removal.
  node.volumes.remove = async () => recordVolumeRemoval(db, { volumeId, nodeId: 'a' }, 1);
  await discardVolume(deps, volumeId);
  expect((await volumeRemovalsOn(db, 'a')).filter(removal => removal.volumeId === volumeId)).toEqual([]);
});

test('an unknown volume becomes the team’s, with its own size or the default, within the limit', async () => {
  const { deps, a } = scene();
  const team = await createTeam({ db, clock: () => nowUs }, { name: 'V', slug: `v${newUuid().slice(0, 8)}` });
  const ids = Array.from({ length: 3 }, () => newUuid());
  for (const [number, volumeId] of ids.entries())
    a.volumes.push({ volumeId, createdAtMs: 1.5 + number, ...(number === 0 && { sizeMiB: 7 }) });
  const limited = { ...deps, limitsOf: limitsFrom({ volumes: 2, volumeMiB: 99 }) };
  const [first = '', second = '', third = ''] = ids;
  await adoptVolume(limited, team, first, 'one');
  expect(await findVolume(db, first)).toMatchObject({
    ...{ teamId: team.teamId, nodeId: 'a', name: 'one', sizeMiB: 7, createdAtUs: 1500 },
  });
  await expect(adoptVolume(limited, team, second, 'one')).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('has a volume "one" already'),
  });
  await adoptVolume(limited, team, second, 'two');
  expect(await findVolume(db, second)).toMatchObject({ sizeMiB: 99 });
  await expect(adoptVolume(limited, team, third, 'three')).rejects.toMatchObject({
    code: 'rate_limited',
    message: expect.stringContaining('The team has 2 volumes'),
  });
});

test('what an accepted database did not know may be forgotten', async () => {
  await putInstallation(db, { installationId: 'i', seedDigest: 's', generation: 1, acceptedAtUs: 5 });
  await forgetUnknown(db);
  expect(await findInstallation(db)).toMatchObject({ installationId: 'i', acceptedAtUs: null });
});
