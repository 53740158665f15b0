import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../../base/error.ts';
import type { PauseFacts } from '../../../../protocol/cluster.ts';
import type { MemoryFacts, NodeInfo, NodeProtocol } from '../../../../protocol/node.ts';
import type { DurableSnapshots } from '../../../blob/rules/snapshots.ts';
import type { BuildRecord } from '../../../build/record.ts';
import { openStore } from '../../../database/database.ts';
import { noCompatibleNode, type Nodes } from '../../../placement/nodes.ts';
import { placeWith } from './memory.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());

const memory: MemoryFacts = { architecture: 'x86_64', kernel: '6.1', criu: '4.1', cpuFlags: [], agent: 'a1' };
const facts: PauseFacts = { kept: 'memory', sizeBytes: 1, layers: [], driver: 'crun', memory };
const kept: NodeInfo['memoryByDriver'] = { crun: { kept: true } };

/** Machines in reach, with the builds of their agents. */
function machines(agents: Record<string, string>): Nodes {
  const list = Object.entries(agents).map(([nodeId, agent]) => {
    const own = { cpuCount: 2, memoryBytes: 2 ** 32, sandboxCount: 0, sandboxesMax: 10, driver: 'crun' as const };
    const info: NodeInfo = {
      nodeId,
      ...own,
      memory: { kept: true },
      memoryByDriver: kept,
      restores: { ...memory, agent },
    };
    return { nodeId, info, protocol: { of: nodeId } as unknown as NodeProtocol };
  });
  const get = (wanted: string) => list.find(({ nodeId }) => nodeId === wanted)?.protocol as NodeProtocol;
  return { list: () => list, get, away: () => [] };
}

const stored = { facts: async () => facts } as unknown as DurableSnapshots;
const snapshot: Pick<BuildRecord, 'config'> = { config: { memorySnapshotId: 's1' } as BuildRecord['config'] };
const withConfig = (change: object) => ({ config: { ...snapshot.config, ...change } });
const wanted = { cpuCount: 1, memoryMiB: 64, home: 'home' };
const place = (
  nodes: Nodes,
  durableSnapshots: DurableSnapshots | null = stored,
  build = snapshot,
  asked: Parameters<typeof placeWith>[2] = wanted,
) => placeWith({ db, nodes, durableSnapshots }, build, asked);
const both = machines({ home: 'a1', other: 'a1' });
const full = { ...wanted, full: new Set(['home']) };

test('a sandbox starts on the machine that has its memory', async () => {
  for (const durableSnapshots of [stored, null]) expect((await place(both, durableSnapshots)).nodeId).toBe('home');
});

test('it starts elsewhere if that machine is away or full, and the memory is in the store', async () => {
  const other = { nodeId: 'other', protocol: both.get('other') };
  expect(await place(both, stored, snapshot, full)).toEqual(other);
  expect((await place(machines({ other: 'a1' }))).nodeId).toBe('other');
});

test('it waits for its machine if no other one has what it starts from', async () => {
  const isFull = { code: 'unavailable', message: expect.stringContaining('No machine takes a new sandbox') };
  const none = { facts: async () => null } as unknown as DurableSnapshots;
  for (const durableSnapshots of [null, none])
    await expect(place(both, durableSnapshots, snapshot, full)).rejects.toMatchObject(isFull);
  // Volumes stay where they are.
  const volumeMounts = [{ volumeId: 'v', name: 'v', path: '/v' }];
  await expect(place(both, stored, withConfig({ volumeMounts }), full)).rejects.toMatchObject(isFull);
  await expect(place(both, stored, withConfig({ memorySnapshotId: undefined }), full)).rejects.toMatchObject(isFull);
  const anywhere = { cpuCount: 1, memoryMiB: 64, full: new Set(['home', 'other']) };
  await expect(place(both, stored, snapshot, anywhere)).rejects.toMatchObject(isFull);
});

test('if its memory fits no other machine, the error says why', async () => {
  await expect(place(machines({ other: 'b2' }))).rejects.toMatchObject({
    code: 'precondition',
    detail: noCompatibleNode,
    message:
      'The machine with the memory of the snapshot takes no sandbox now, and no other machine takes it ' +
      '(other: it has another build of the agent)',
  });
});

test('if the others are full too, the error says so', async () => {
  const asked = { ...wanted, full: new Set(['home', 'other']) };
  await expect(place(both, stored, snapshot, asked)).rejects.toMatchObject({ code: 'unavailable' });
});

test('an error that is not about room is not taken for one', async () => {
  const broken = new AtollError('internal', 'the store is not readable');
  const nodes = { ...both, list: () => [] };
  const failing = { facts: () => Promise.reject(broken) } as unknown as DurableSnapshots;
  await expect(place(nodes, failing)).rejects.toBe(broken);
});
