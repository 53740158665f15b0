import { afterAll, beforeEach, expect, spyOn, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import type { VolumeState } from '../../../protocol/cluster.ts';
import type { NodeInfo, NodeProtocol } from '../../../protocol/node.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import { openStore } from '../../database/database.ts';
import { setNodeStatus } from '../../placement/node-status.ts';
import type { Nodes } from '../../placement/nodes.ts';
import { defaultOptions, type SandboxRecord } from '../../sandbox/record.ts';
import { insertSandbox } from '../../sandbox/store/create.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import type { VolumeRecord } from '../record.ts';
import type { VolumeCopies } from '../rules/volume-copies.ts';
import { insertVolume } from '../store/volumes.ts';
import { volumeKeeping } from './copies.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
beforeEach(async () => {
  for (const table of ['sandboxes', 'volumes', 'nodes'] as const) await db.deleteFrom(table).execute();
});
const clock = () => 1e15;
const { teamId } = await createTeam({ db, clock }, { name: 'T', slug: 't' });

/** A volume of the machine `a` without a copy. */
async function volume(volumeId: string, nodeId = 'a', movingTo: string | null = null): Promise<void> {
  const made = { volumeId, teamId, nodeId, name: volumeId, sizeMiB: 64, createdAtUs: 0 };
  expect(await insertVolume(db, made, 100)).toBe('inserted');
  await db.updateTable('volumes').set({ moving_to: movingTo }).where('volume_id', '=', volumeId).execute();
}

/** A paused sandbox that has a volume. */
async function use(volumeId: string): Promise<void> {
  const sandbox: SandboxRecord = {
    ...{ ...defaultOptions, sandboxId: `of ${volumeId}`, executionId: 'e', teamId, nodeId: 'a' },
    ...{ state: 'paused', templateId: 't' },
    ...{ buildId: 'b', alias: null, agentVersion: '1', cpuCount: 1, memoryMiB: 1, diskMiB: 1, createdAtUs: 1 },
    ...{ startedAtUs: 1, endAtUs: 1, timeoutSeconds: 1, secure: true, kept: 'memory', agentUnresponsive: false },
    ...{ durability: 'node', nextExecutionId: null, nextNodeId: null, replicaId: null },
    volumeMounts: [{ volumeId, name: 'any', path: '/data' }],
  };
  expect(await insertSandbox(db, sandbox, { concurrentSandboxes: 100, sandboxes: 100 })).toBe('inserted');
}

const empty = (status: 'pausing' | 'moving' | 'evicting') => setNodeStatus(db, { nodeId: 'a', status, changedAtUs: 1 });

type Work = (volumeId: string) => Promise<void>;

/** The machines `a` and `b`, whose volumes are looked after; `work` is called for what is begun with each. */
function keeping({ work = async () => {}, areStored = true, unlisted = [] }: Partial<Keeping> = {}) {
  const done: string[] = [];
  const logged: string[] = [];
  const states = async (): Promise<VolumeState[]> =>
    (await db.selectFrom('volumes').select('volume_id').execute())
      .filter(row => !unlisted.includes(row.volume_id))
      .map(row => ({ volumeId: row.volume_id, isInSandbox: false, changedAtMs: 5 }));
  const ids = ['a', 'b'];
  const machines = ids.map(nodeId => ({ node: { nodeId }, machine: { volumeCopies: { states } } }));
  const info = { cpuCount: 2, memoryBytes: 2 ** 32, sandboxCount: 0, sandboxesMax: 10, driver: 'crun' };
  const nodes: Nodes = {
    list: () => ids.map(nodeId => ({ nodeId, protocol: {} as NodeProtocol, info: { nodeId, ...info } as NodeInfo })),
    get: () => ({}) as NodeProtocol,
    away: () => [],
  };
  const volumeCopies = {
    areStored,
    settle: async () => void done.push('settle'),
    async copy({ volumeId }: VolumeRecord, state: VolumeState) {
      done.push(`copy ${volumeId} ${state.changedAtMs}`);
      await work(volumeId);
    },
    async move({ volumeId }: VolumeRecord, nodeId: string) {
      done.push(`move ${volumeId} to ${nodeId}`);
      await work(volumeId);
    },
  } as unknown as VolumeCopies;
  const { round, settled } = volumeKeeping({
    ...{ clock, db, nodes, volumeCopies },
    log: createLog('debug', line => logged.push(line)),
    machines: { usable: () => machines } as unknown as Machines,
  });
  /** What one round does, in order. */
  const rounded = async () => {
    done.length = 0;
    await round();
    await settled();
    return done.toSorted();
  };
  return { done, logged, round, settled, rounded };
}

type Keeping = { work: Work; areStored: boolean; unlisted: string[] };

test('changed volumes are copied, after leftovers were taken back', async () => {
  for (const id of ['v1', 'v2', 'same']) await volume(id, id === 'v2' ? 'b' : 'a');
  await db
    .updateTable('volumes')
    .set({ copy_id: 'c', copied_at_us: 0, copied_change_us: 5000 })
    .where('volume_id', '=', 'same')
    .execute();
  const { done, rounded } = keeping();
  expect(await rounded()).toEqual(['copy v1 5', 'copy v2 5', 'settle']);
  expect(done[0]).toBe('settle');
});

test('a volume that is being moved, or is missing, is left alone, and without a store nothing is copied', async () => {
  await volume('moving', 'a', 'b');
  await volume('elsewhere', 'out of reach');
  await volume('unlisted');
  expect(await keeping({ unlisted: ['unlisted'] }).rounded()).toEqual(['settle']);
  await volume('v');
  expect(await keeping({ areStored: false }).rounded()).toEqual(['settle']);
});

test('a machine that is emptied by moves gives up the volumes that no sandbox has', async () => {
  for (const id of ['free', 'used']) await volume(id);
  await use('used');
  for (const status of ['moving', 'evicting'] as const) {
    await empty(status);
    expect(await keeping().rounded()).toEqual(['copy used 5', 'move free to b', 'settle']);
  }
  // They move even where there is no store, and stay where sandboxes are paused.
  expect(await keeping({ areStored: false }).rounded()).toEqual(['move free to b', 'settle']);
  await empty('pausing');
  expect(await keeping().rounded()).toEqual(['copy free 5', 'copy used 5', 'settle']);
});

test('two volumes are worked on at a time, each of them once', async () => {
  for (const id of ['v1', 'v2', 'v3']) await volume(id);
  const go = Promise.withResolvers<void>();
  const { done, round, settled } = keeping({ work: () => go.promise });
  await round();
  await round();
  expect(done).toEqual(['settle', 'copy v1 5', 'copy v2 5', 'settle']);
  go.resolve();
  await settled();
  expect(done.at(-1)).toBe('copy v3 5');
  // Once they are done, they are checked again.
  await round();
  await settled();
  expect(done.slice(5)).toEqual(['settle', 'copy v1 5', 'copy v2 5', 'copy v3 5']);
});

test('a failure is logged, and tried again a while later', async () => {
  await volume('v');
  using now = spyOn(performance, 'now').mockReturnValue(1000);
  const { logged, rounded } = keeping({ work: () => Promise.reject(new Error('the disk is gone')) });
  expect(await rounded()).toEqual(['copy v 5', 'settle']);
  expect(logged).toEqual([expect.stringContaining('copied to the store')]);
  expect(logged[0]).toContain('the disk is gone');
  now.mockReturnValue(1000 + 15_000);
  expect(await rounded()).toEqual(['settle']);
  now.mockReturnValue(1000 + 15_001);
  expect(await rounded()).toEqual(['copy v 5', 'settle']);
  expect(logged).toHaveLength(2);
});

test('work of somebody else is no failure, and is checked again in the next round', async () => {
  await volume('v');
  const { logged, rounded } = keeping({ work: () => Promise.reject(new AtollError('conflict', 'it is used')) });
  for (let rounds = 0; rounds < 2; rounds++) expect(await rounded()).toEqual(['copy v 5', 'settle']);
  expect(logged).toEqual([]);
});

test('another failure is not taken for a conflict', async () => {
  await volume('v');
  const { logged, rounded } = keeping({ work: () => Promise.reject(new AtollError('no_space', 'it is full')) });
  expect(await rounded()).toEqual(['copy v 5', 'settle']);
  expect(logged).toHaveLength(1);
  expect(await rounded()).toEqual(['settle']);
});
