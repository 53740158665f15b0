import { expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import type { ClusterLinks, ControlIdentity, Machine, NodeWay, PauseFacts } from '../../../protocol/cluster.ts';
import type { MemoryFacts, NodeInfo, NodeProtocol } from '../../../protocol/node.ts';
import { noCompatibleNode } from '../../placement/nodes.ts';
import type { ClusterNode } from '../record.ts';
import { leaseSeconds } from './lease.ts';
import { Machines } from './machines.ts';

const identity = { authority: 'ours' } as ControlIdentity;
const memory: MemoryFacts = { architecture: 'x86_64', kernel: '6.1', criu: '4.1', cpuFlags: [], agent: 'a' };
const facts: PauseFacts = { kept: 'memory', sizeBytes: 1, layers: [], driver: 'crun', memory };
const info = { memoryByDriver: { crun: { kept: true } }, restores: memory } as unknown as NodeInfo;
const node = (nodeId: string, change: Partial<ClusterNode> = {}): ClusterNode => ({
  ...{ nodeId, address: '192.0.2.1:3010', certificates: ['c'], renewAtUs: 0, joinedAtUs: 7, leaseUntilUs: null },
  ...{ isGivenUp: false, bootId: null, info: null },
  ...change,
});

/** The machines of a cluster, each with its snapshots and layers, and what they were told. */
function scene(has: Record<string, { layers?: string[]; isAway?: boolean }> = {}) {
  const told: string[] = [];
  const logged: string[] = [];
  const ways: (() => Promise<NodeWay>)[] = [];
  const layersOf = (nodeId: string) => new Set(has[nodeId]?.layers ?? []);
  const here = new Map(Object.keys(has).map(nodeId => [nodeId, layersOf(nodeId)]));
  const links = {
    connect(nodeId: string, way: () => Promise<NodeWay>) {
      told.push(`connect ${nodeId}`);
      ways.push(way);
      return {
        node: {
          listSnapshots: async () => [],
          create: async ({ image }: { image: object }) => (
            told.push(`create on ${nodeId}: ${Object.keys(image)}`),
            image
          ),
        } as unknown as NodeProtocol,
        layers: {
          name: nodeId,
          async missing(digests: string[]) {
            if (has[nodeId]?.isAway) throw new AtollError('unavailable', 'it does not answer');
            return digests.filter(digest => !here.get(nodeId)?.has(digest));
          },
        },
        drop: () => void told.push(`drop ${nodeId}`),
        close: () => void told.push(`close ${nodeId}`),
      } as unknown as Machine;
    },
    async copyLayer(digest: string, from: { name: string }, to: { name: string }) {
      told.push(`copy ${digest} from ${from.name} to ${to.name}`);
      await Bun.sleep(0);
      here.get(to.name)?.add(digest);
    },
  } as unknown as ClusterLinks;
  const machines = new Machines(
    links,
    () => identity,
    createLog('warn', line => logged.push(line)),
  );
  const names = Object.keys(has);
  machines.update(names.map(nodeId => node(nodeId)));
  for (const nodeId of names) machines.setUsable(nodeId, true, 5);
  told.length = 0;
  return { machines, told, logged, ways, here, links };
}

test('a machine is connected once, and anew if it has moved or has another certificate', async () => {
  const { machines, told, ways } = scene();
  machines.update([node('a'), node('b')]);
  const [a] = machines.update([node('a', { bootId: 'other' }), node('b')]);
  expect([told, a?.node.bootId]).toEqual([['connect a', 'connect b'], 'other']);
  told.length = 0;
  machines.update([node('a', { address: '[2001:db8::1]:99' }), node('b', { certificates: ['c', 'd'] })]);
  expect(told).toEqual(['close a', 'connect a', 'close b', 'connect b']);
  expect(await ways[0]?.()).toEqual({
    ...{ place: { nodeId: 'a', host: '192.0.2.1', port: 3010, certificates: ['c'] }, identity },
  });
  expect((await ways[2]?.())?.place).toMatchObject({ host: '2001:db8::1', port: 99 });
  told.length = 0;
  machines.update([node('b', { certificates: ['c', 'd'] })]);
  expect([told, machines.away().map(({ nodeId }) => nodeId)]).toEqual([['close a'], ['b']]);
});

test('a machine can be called while it is usable, and its calls under way end with that', () => {
  const { machines, told, links } = scene();
  const away = { code: 'unavailable', detail: noCompatibleNode, retryAfterSeconds: 2 };
  const [known] = machines.update([node('a')]);
  const failure = () => {
    try {
      return machines.get('a');
    } catch (error) {
      return error;
    }
  };
  expect(failure()).toMatchObject(away);
  machines.setUsable('a', true, 5);
  expect(machines.get('a')).toBe(known?.protocol as NodeProtocol);
  expect(machines.known('a')).toMatchObject({ usableSinceUs: 5 });
  // It is usable already.
  machines.setUsable('a', true, 9);
  expect(machines.list()).toEqual([{ nodeId: 'a', protocol: known?.protocol as NodeProtocol, sinceUs: 5 }]);
  told.length = 0;
  machines.setUsable('a', false, 10);
  machines.setUsable('unknown', false, 10);
  expect([told, failure(), machines.list()]).toMatchObject([['drop a'], away, []]);
  expect(machines.carried).toBe(links as never);
});

test('work during a machine’s usable time ends with that', async () => {
  const { machines } = scene();
  const following: string[] = [];
  let count = 0;
  machines.follow(() => {
    const name = `work ${++count}`;
    following.push(`begin ${name}`);
    return { stop: async () => void following.push(`stop ${name}`) };
  });
  machines.update([node('a'), node('b')]);
  for (const isUsable of [true, false, true]) machines.setUsable('a', isUsable, 1);
  machines.setUsable('b', true, 1);
  machines.update([node('a')]);
  expect(following).toEqual(['begin work 1', 'stop work 1', 'begin work 2', 'begin work 3', 'stop work 3']);
  await machines.stop();
  expect(following.filter(text => text === 'stop work 2')).not.toEqual([]);
  expect([machines.usable(), machines.away()]).toEqual([[], []]);
});

test('a machine counts as away since it was last heard, or since it joined', () => {
  const { machines } = scene();
  const [, silent, answering] = machines.update([
    node('new'),
    node('silent', { leaseUntilUs: 100e6, info }),
    node('answering', { leaseUntilUs: 100e6 }),
  ]);
  Object.assign(answering ?? {}, { isAnswering: true, release: '1.0' });
  expect(silent?.release).toBeNull();
  const [first, second, third] = machines.away();
  expect(first).toEqual({ nodeId: 'new', isConnecting: true, sinceUs: 7, info: null });
  expect(second).toMatchObject({ isConnecting: false, info });
  expect(second).not.toHaveProperty('release');
  expect(second?.sinceUs).toBe(100e6 - leaseSeconds * 1e6);
  expect(third).toMatchObject({ isConnecting: true, release: '1.0' });
  machines.setUsable('silent', true, 3);
  machines.setUsable('answering', true, 4);
  expect(machines.list()).toMatchObject([
    { nodeId: 'silent', info },
    { nodeId: 'answering', release: '1.0' },
  ]);
  expect(machines.list()[1]).not.toHaveProperty('info');
});

test('another process gets the way to a usable machine', () => {
  const { machines } = scene({ a: {} });
  const theirs = { authority: 'theirs' } as ControlIdentity;
  expect(machines.way('a', () => theirs)).toMatchObject({ place: { nodeId: 'a', port: 3010 }, identity: theirs });
  expect(() => machines.way('b', () => theirs)).toThrow('out of reach');
});

test('missing layers come from the store, or from a machine that has them, once at a time', async () => {
  const { machines, told, here } = scene({ a: { layers: ['l1', 'l2'] }, b: { layers: ['l1'] }, c: { isAway: true } });
  expect(await machines.layers.holders(['l1', 'l2'])).toEqual(['a']);
  expect((await machines.layers.holder('l2')) as unknown).toBe(machines.known('a').machine);
  await Promise.all([machines.layers.ensure('b', ['l1', 'l2']), machines.layers.ensure('b', ['l2'])]);
  expect(told).toEqual(['copy l2 from a to b']);
  await machines.layers.ensure('b', ['l2']);
  await machines.layers.ensure('unknown', ['l3']);
  await machines.layers.ensure('c', []);
  expect(told).toHaveLength(1);
  const none = { code: 'unavailable', detail: noCompatibleNode };
  await expect(machines.layers.ensure('b', ['l3'])).rejects.toMatchObject(none);
  await expect(machines.layers.holder('l3')).rejects.toMatchObject(none);
  machines.layers.fromStore = async digest => {
    if (digest === 'l4') here.get('b')?.add(digest);
    return digest === 'l4';
  };
  await machines.layers.ensure('b', ['l4']);
  expect(told).toHaveLength(1);
});

test('if the store fails, the machines are asked all the same', async () => {
  const { machines, told, logged } = scene({ a: { layers: ['l'] }, b: {} });
  machines.layers.fromStore = () => Promise.reject(new AtollError('unavailable', 'the store is away'));
  await machines.layers.ensure('b', ['l']);
  expect(told).toEqual(['copy l from a to b']);
  expect(logged).toEqual([expect.stringContaining('the store is away')]);
});

test('memory that a sandbox starts with is brought to a machine that it fits', async () => {
  const { machines, told, logged } = scene({ a: {} });
  const brought: string[] = [];
  const create = (image: object) => machines.get('a').create({ image: { layers: [], ...image } } as never);
  const started = { started: { snapshotId: 's', layers: [] } };
  machines.memories = {
    facts: async snapshotId => (snapshotId === 's' ? facts : null),
    bring: async (snapshotId, nodeId) => void brought.push(`${snapshotId} to ${nodeId}`),
  };
  // It has not said what it can restore.
  await create(started);
  machines.update([node('a', { info })]);
  await create(started);
  await create({ memorySnapshotId: 'unknown' });
  expect(brought).toEqual(['s to a']);
  machines.memories.bring = () => Promise.reject(new AtollError('no_space', 'it is full'));
  await create({ memorySnapshotId: 's' });
  machines.memories = null;
  await create(started);
  // A server boots without its memory; requested memory is requested from the machine.
  expect(told).toEqual([
    'create on a: layers',
    'create on a: layers,started',
    'create on a: layers,memorySnapshotId',
    'create on a: layers,memorySnapshotId',
    'create on a: layers',
  ]);
  expect(logged).toEqual([expect.stringContaining('memory could not be brought to a machine')]);
});
