import { afterEach, beforeEach, expect, test } from 'bun:test';
import { sql } from 'kysely';
import { type Store, openStore } from '../database/database.ts';
import {
  changeNodeStatusFrom,
  drainingAndAllocations,
  drainingNodes,
  findNodeStatus,
  isEmptying,
  isForgotten,
  isGone,
  nodeAllocation,
  nodeAllocations,
  nodesToEmpty,
  setNodeStatus,
} from './node-status.ts';

let store: Store;
beforeEach(async () => {
  store = await openStore({ kind: 'sqlite', path: ':memory:' });
  await sql`pragma foreign_keys = off`.execute(store.db);
});
afterEach(() => store[Symbol.asyncDispose]());

let made = 0;
/** A sandbox with two CPUs and 512 MiB. */
async function sandbox(nodeId: string, state: string, nextNodeId: string | null = null): Promise<void> {
  await sql`insert into sandboxes (sandbox_id, execution_id, team_id, node_id, state, template_id, build_id,
    agent_version, cpu_count, memory_mib, disk_mib, created_at_us, started_at_us, end_at_us, timeout_seconds, secure,
    auto_pause, auto_pause_memory, auto_resume, env_vars_json, volume_mounts_json, next_node_id)
    values (${`s${made++}`}, 'e', 't', ${nodeId}, ${state}, 't', 'b', '1', 2, 512, 1024, 1, 1, 2, 60, 0, 0, 0, 0, '{}',
    '[]', ${nextNodeId})`.execute(store.db);
}

const of = (sandboxes: number, starting = 0) => ({
  cpuCount: 2 * sandboxes,
  memoryMiB: 512 * sandboxes,
  sandboxes,
  starting,
});

test('a machine has promised what its sandboxes have, except paused ones', async () => {
  for (const state of ['running', 'starting', 'paused']) await sandbox('one', state);
  await sandbox('two', 'running');
  expect(await nodeAllocations(store.db)).toEqual(
    new Map([
      ['one', of(2, 1)],
      ['two', of(1)],
    ]),
  );
  expect(await nodeAllocations(store.db, ['two', 'three'])).toEqual(new Map([['two', of(1)]]));
  expect(await nodeAllocation(store.db, 'one')).toEqual(of(2, 1));
  expect(await nodeAllocation(store.db, 'three')).toEqual(of(0));
  await expect(nodeAllocations(store.db, ['a', 'b', 'c', 'd'])).rejects.toThrow('more machines are named');
});

test('a sandbox that is being moved counts for both machines', async () => {
  await sandbox('one', 'moving', 'two');
  await sandbox('two', 'moving', 'two');
  const { allocations } = await drainingAndAllocations(store.db, ['one', 'two', 'three']);
  expect(allocations).toEqual(
    new Map([
      ['one', of(1)],
      ['two', of(2)],
    ]),
  );
});

test('an operator’s setting is found, and changed only from its expected value', async () => {
  const status = (nodeId: string, wanted: 'ready' | 'draining' | 'moving', changedAtUs = 1) =>
    ({ nodeId, status: wanted, changedAtUs }) as const;
  expect(await findNodeStatus(store.db, 'one')).toBeNull();
  await setNodeStatus(store.db, status('one', 'draining'));
  await setNodeStatus(store.db, status('two', 'ready'));
  await setNodeStatus(store.db, status('two', 'moving', 2));
  expect(await findNodeStatus(store.db, 'two')).toEqual(status('two', 'moving', 2));
  expect(await drainingNodes(store.db)).toEqual(new Set(['one', 'two']));
  expect(await nodesToEmpty(store.db)).toEqual(new Map([['two', 'moving']]));
  expect(await changeNodeStatusFrom(store.db, status('one', 'ready', 3), 'moving')).toBe(false);
  expect(await changeNodeStatusFrom(store.db, status('one', 'ready', 3), 'draining')).toBe(true);
  expect(await findNodeStatus(store.db, 'one')).toEqual(status('one', 'ready', 3));
  // A machine without a setting is wanted as `ready`.
  expect(await changeNodeStatusFrom(store.db, status('three', 'draining'), 'moving')).toBe(false);
  expect(await changeNodeStatusFrom(store.db, status('three', 'draining'), 'ready')).toBe(true);
  expect(await changeNodeStatusFrom(store.db, status('three', 'moving'), 'ready')).toBe(false);
  expect((await drainingAndAllocations(store.db, [])).closed).toEqual(new Set(['two', 'three']));
});

test('machines are emptied by pauses, by moves, or by both', () => {
  expect(['pausing', 'moving', 'evicting', 'draining', 'ready'].map(isEmptying)).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
});

test('a machine is forgotten if the cluster does not know it, and gone if it was given up as well', async () => {
  const cluster = { db: store.db, nodes: { away: () => [] } } as unknown as Parameters<typeof isForgotten>[0];
  const alone = { db: store.db, nodes: {} } as unknown as Parameters<typeof isForgotten>[0];
  expect([await isForgotten(alone, 'one'), await isForgotten(cluster, 'one')]).toEqual([false, true]);
  expect(await isGone(store.db, 'one')).toBe(true);
});
