import { afterAll, beforeEach, expect, test } from 'bun:test';
import type { NodeInfo, NodeProtocol } from '../../protocol/node.ts';
import { putClusterNode } from '../cluster/store/nodes.ts';
import { openStore } from '../database/database.ts';
import { setNodeStatus } from './node-status.ts';
import { noCompatibleNode, type Nodes, singleNode } from './nodes.ts';
import { placeSandbox, type Wanted } from './place.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
beforeEach(async () => void (await db.deleteFrom('nodes').execute()));

/** Machines with two CPUs and 4 GiB, each with the report in `said`. */
function machines(said: Record<string, Partial<NodeInfo>>): Nodes {
  const list = Object.entries(said).map(([nodeId, change]) => ({
    nodeId,
    protocol: {} as NodeProtocol,
    info: {
      nodeId,
      cpuCount: 2,
      memoryBytes: 2 ** 32,
      sandboxCount: 0,
      sandboxesMax: 10,
      driver: 'crun',
      memory: { kept: true },
      memoryByDriver: { crun: { kept: true } },
      ...change,
    } as NodeInfo,
  }));
  return { list: () => list, get: () => ({}) as NodeProtocol, away: () => [] };
}

const small: Wanted = { cpuCount: 1, memoryMiB: 512 };
const place = async (nodes: Nodes, wanted: Partial<Wanted> = {}) =>
  (await placeSandbox(nodes, db, { ...small, ...wanted })).nodeId;
const takeOut = (nodeId: string) => setNodeStatus(db, { nodeId, status: 'draining', changedAtUs: 1 });
const two = machines({ a: {}, b: {} });
const labels = (demanded: Record<string, string>) => ({ demands: { labels: demanded, apart: null } });

/** The machines that are chosen: equal ones take turns. */
async function chosen(nodes: Nodes, wanted: Partial<Wanted> = {}): Promise<Set<string>> {
  const found = new Set<string>();
  for (let left = 60; left > 0; left--) found.add(await place(nodes, wanted));
  return found;
}

test('a single machine that does not report on itself decides about its room by itself', async () => {
  const alone = singleNode('only', {} as NodeProtocol);
  expect(await place(alone, { cpuCount: 1000 })).toBe('only');
  expect((await placeSandbox(alone, db)).nodeId).toBe('only');
  await takeOut('only');
  await expect(place(alone)).rejects.toThrow('1 machine in reach, 1 taken out');
});

test('equal machines take turns', async () => {
  expect(await chosen(two)).toEqual(new Set(['a', 'b']));
});

test('a machine that was taken out or had no room a moment ago is not chosen', async () => {
  expect(await chosen(two, { full: new Set(['a']) })).toEqual(new Set(['b']));
  await takeOut('b');
  expect(await chosen(two)).toEqual(new Set(['a']));
});

test('a sandbox goes to the machine that has what it starts from, and to no other', async () => {
  expect(await chosen(two, { home: 'b' })).toEqual(new Set(['b']));
  await expect(place(two, { home: 'c' })).rejects.toMatchObject({
    code: 'precondition',
    detail: noCompatibleNode,
    message: expect.stringContaining('begins with (node c) was taken out for good'),
  });
  const away = { nodeId: 'c', address: '203.0.113.9:3010', certificates: [], renewAtUs: 0, joinedAtUs: 0 };
  await putClusterNode(db, away, null);
  await expect(place(two, { home: 'c' })).rejects.toMatchObject({
    code: 'unavailable',
    detail: noCompatibleNode,
    message: expect.stringContaining('begins with (node c) is out of reach'),
  });
  await takeOut('b');
  await expect(place(two, { home: 'b' })).rejects.toThrow('No machine takes a new sandbox with 1 CPU and 512 MiB now');
});

test('it goes to a machine that has its driver and the labels that it demands', async () => {
  const nodes = machines({
    a: { memoryByDriver: { gvisor: { kept: false, reason: 'it is gVisor' } } },
    b: { labels: { zone: 'x' } },
    c: { labels: { zone: 'y' } },
  });
  expect(await chosen(nodes, { driver: 'gvisor' })).toEqual(new Set(['a']));
  expect(await chosen(nodes, { driver: 'crun' })).toEqual(new Set(['b', 'c']));
  expect(await chosen(nodes, labels({ zone: 'y' }))).toEqual(new Set(['c']));
  await expect(place(nodes, labels({ zone: 'z' }))).rejects.toMatchObject({
    detail: noCompatibleNode,
    message: expect.stringContaining('in reach take sandboxes, 0 of these with the labels zone=z, and none'),
  });
});

test('it goes where it fits, and where it fits nowhere the refusal has the numbers', async () => {
  const nodes = machines({ little: { memoryBytes: 2 ** 28 }, large: {}, none: { sandboxesMax: 0 } });
  expect(await chosen(nodes)).toEqual(new Set(['large']));
  await expect(place(nodes, { memoryMiB: 100_000 })).rejects.toMatchObject({
    code: 'unavailable',
    detail: 'sandbox_capacity_unavailable',
    retryAfterSeconds: 5,
    message:
      'No machine takes a new sandbox with 1 CPU and 100000 MiB now: 3 of 3 machines in reach take sandboxes, ' +
      'and none has that much left; nothing was changed',
  });
});

test('of many machines a few are compared, and if none of these has room, all of them', async () => {
  const many = machines(Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`n${index}`, {}])));
  expect((await chosen(many)).size).toBeGreaterThan(3);
  const one = machines(
    Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`n${index}`, { sandboxesMax: index === 7 ? 1 : 0 }])),
  );
  expect(await chosen(one)).toEqual(new Set(['n7']));
});
