import { afterAll, beforeEach, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import type { NodeProtocol } from '../../../protocol/node.ts';
import { putClusterNode } from '../../cluster/store/nodes.ts';
import { openStore } from '../../database/database.ts';
import type { Nodes } from '../../placement/nodes.ts';
import { recordHome, recordPastSandbox } from '../../sandbox/store/past.ts';
import type { StoredLogs } from '../rules/logs.ts';
import { storeLogs } from './logs.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const nowUs = 1e15;
const secondUs = 1_000_000;
beforeEach(async () => {
  for (const table of ['past_sandboxes', 'sandbox_homes', 'cluster_nodes'] as const)
    await db.deleteFrom(table).execute();
  for (const nodeId of ['a', 'b', 'away', 'given up'])
    await putClusterNode(db, { nodeId, address: '192.0.2.1:1', certificates: [], renewAtUs: 0, joinedAtUs: 0 }, null);
  await db.updateTable('cluster_nodes').set({ given_up: 1 }).where('node_id', '=', 'given up').execute();
});

/** A sandbox that has ended on a machine, and was on others before. */
async function ended(sandboxId: string, nodeId: string, { agoUs = 10 * secondUs, homes = [] as string[] } = {}) {
  await recordPastSandbox(db, { sandbox_id: sandboxId, team_id: 't', node_id: nodeId, ended_at_us: nowUs - agoUs });
  for (const home of homes) await recordHome(db, { sandboxId, nodeId: home, leftAtUs: 1 });
}

/** Runs one round and answers the sandboxes whose logs it stores, with the machines that it asks. */
async function round(stores: (sandboxId: string) => Promise<boolean> = async () => true, isUsable = true) {
  const asked: string[] = [];
  const logged: string[] = [];
  const list = ['a', 'b'].map(nodeId => ({ nodeId, protocol: { nodeId } as unknown as NodeProtocol }));
  const storedLogs = {
    isUsable,
    async store(sandboxId: string, machines: { nodeId: string }[]) {
      asked.push(`${sandboxId} of ${machines.map(({ nodeId }) => nodeId)}`);
      return stores(sandboxId);
    },
  } as unknown as StoredLogs;
  const log = createLog('warn', line => logged.push(line));
  const nodes = { list: () => list } as unknown as Nodes;
  await storeLogs({ clock: () => nowUs, db, log, nodes, storedLogs });
  return { asked: asked.toSorted(), logged };
}

test('the log of an ended sandbox is stored once, a moment later, from all machines that it was on', async () => {
  await ended('one', 'a');
  await ended('moved', 'b', { homes: ['a', 'b'] });
  await ended('now', 'a', { agoUs: 3 * secondUs });
  await ended('elsewhere', 'away');
  expect((await round()).asked).toEqual(['moved of b,a', 'one of a']);
  expect((await round()).asked).toEqual([]);
});

test('storing waits for a machine that may come back, but not for one that is gone for good', async () => {
  await ended('waits', 'a', { homes: ['away'] });
  await ended('goes on', 'a', { homes: ['given up'] });
  expect((await round()).asked).toEqual(['goes on of a']);
  // It was taken out of the cluster.
  await db.deleteFrom('cluster_nodes').where('node_id', '=', 'away').execute();
  expect((await round()).asked).toEqual(['waits of a']);
});

test('a log that is not stored yet is tried again, and a failure is logged', async () => {
  await ended('busy', 'a');
  await ended('fails', 'a');
  const stores = async (sandboxId: string) => {
    if (sandboxId === 'fails') throw new AtollError('unavailable', 'the store is away');
    return false;
  };
  for (let rounds = 0; rounds < 2; rounds++) {
    const { asked, logged } = await round(stores);
    expect(asked).toEqual(['busy of a', 'fails of a']);
    expect(logged).toEqual([expect.stringContaining('the store is away')]);
  }
  expect((await round(stores, false)).asked).toEqual([]);
});
