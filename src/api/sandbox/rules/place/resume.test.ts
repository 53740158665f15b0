import { afterAll, beforeEach, expect, test } from 'bun:test';
import { AtollError } from '../../../../base/error.ts';
import type { PauseFacts } from '../../../../protocol/cluster.ts';
import type { MemoryFacts, NodeInfo, NodeProtocol } from '../../../../protocol/node.ts';
import { nodeFull } from '../../../../protocol/no-room.ts';
import type { DurablePauses } from '../../../blob/rules/pauses.ts';
import { openStore } from '../../../database/database.ts';
import { setNodeStatus } from '../../../placement/node-status.ts';
import { noCompatibleNode, type Nodes } from '../../../placement/nodes.ts';
import type { SandboxRecord } from '../../record.ts';
import { placeOfResume } from './resume.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
beforeEach(async () => void (await db.deleteFrom('nodes').execute()));

const memory: MemoryFacts = { architecture: 'x86_64', kernel: '6.1', criu: '4.1', cpuFlags: [], agent: 'a1' };
const facts: PauseFacts = { kept: 'memory', sizeBytes: 1, layers: [], driver: 'crun', memory };
const info = (nodeId: string, agent: string): NodeInfo => ({
  nodeId,
  cpuCount: 2,
  memoryBytes: 2 ** 32,
  sandboxCount: 0,
  sandboxesMax: 10,
  driver: 'crun',
  memory: { kept: true },
  memoryByDriver: { crun: { kept: true } },
  restores: { ...memory, agent },
});

type Machine = { nodeId: string; agent?: string; answers?: boolean };

/** Machines in reach. */
function machines(...list: Machine[]): Nodes {
  const found = list.map(({ nodeId, agent = 'a1', answers = true }) => {
    const own = info(nodeId, agent);
    const said = async () => (answers ? own : Promise.reject(new AtollError('unavailable', 'it went a moment ago')));
    return { nodeId, info: own, protocol: { info: said } as unknown as NodeProtocol };
  });
  return {
    list: () => found,
    get(wanted) {
      const one = found.find(({ nodeId }) => nodeId === wanted);
      if (one) return one.protocol;
      throw new AtollError('unavailable', `node ${wanted} is not connected`);
    },
    away: () => [],
  };
}

const durablePauses = { facts: async () => facts } as unknown as DurablePauses;
const onMachine = {
  sandboxId: 'i1',
  executionId: 'e1',
  nodeId: 'home',
  teamId: 't',
  metadata: null,
  cpuCount: 1,
  memoryMiB: 64,
  durability: 'node',
} as SandboxRecord;
const stored: SandboxRecord = { ...onMachine, durability: 'cluster' };
const place = (nodes: Nodes, paused = stored, full?: Map<string, AtollError>, withMemory = true) =>
  placeOfResume({ db, nodes, durablePauses }, paused, withMemory, full);
const both = machines({ nodeId: 'home' }, { nodeId: 'other' });
const drain = () => setNodeStatus(db, { nodeId: 'home', status: 'pausing', changedAtUs: 1 });
const full = (...names: string[]) =>
  new Map(names.map(name => [name, new AtollError('no_space', `${name} is full`, { detail: 'disk_reserve' })]));

test('a sandbox goes on where it was paused', async () => {
  for (const paused of [onMachine, stored]) expect(await place(both, paused)).toBe('home');
  // Where there is no other choice, it is not asked whether it is there.
  expect(await place(machines({ nodeId: 'home', answers: false }), onMachine)).toBe('home');
});

test('a stored sandbox goes on elsewhere if its machine is away, drained, full or silent', async () => {
  expect(await place(machines({ nodeId: 'other' }))).toBe('other');
  expect(await place(machines({ nodeId: 'home', answers: false }, { nodeId: 'other' }))).toBe('other');
  expect(await place(both, stored, full('home'))).toBe('other');
  await drain();
  expect(await place(both)).toBe('other');
});

test('a sandbox that only its machine has stays paused if that can’t take it', async () => {
  await expect(place(machines({ nodeId: 'other' }), onMachine)).rejects.toThrow('node home is not connected');
  await expect(place(both, onMachine, full('home'))).rejects.toMatchObject({
    code: 'unavailable',
    message: 'There is no room to resume sandbox "i1" now; it stays paused (home is full)',
    detail: 'disk_reserve',
  });
  await drain();
  await expect(place(both, onMachine)).rejects.toMatchObject({
    code: 'unavailable',
    message: 'Sandbox "i1" stays paused: its machine is being drained; try again when that is over',
    detail: noCompatibleNode,
  });
});

test('without a store the same applies to a sandbox that was in one', async () => {
  const nodes = machines({ nodeId: 'other' });
  await expect(placeOfResume({ db, nodes, durablePauses: null }, stored, true)).rejects.toThrow('is not connected');
});

test('a sandbox that fits no machine in reach gets the reasons, and that files alone may go on', async () => {
  const nodes = machines({ nodeId: 'other', agent: 'b2' });
  const refused = { code: 'precondition', detail: noCompatibleNode };
  const why = 'Sandbox "i1" stays paused: its machine is away, and no other machine takes it (other: it has another';
  await expect(place(nodes)).rejects.toMatchObject({
    ...refused,
    message: `${why} build of the agent). With memory: false it may start from its files`,
  });
  expect(await place(nodes, stored, new Map(), false)).toBe('other');
  const files = { facts: async () => ({ ...facts, kept: 'filesystem', driver: 'gvisor' }) } as unknown as DurablePauses;
  for (const withMemory of [true, false])
    await expect(placeOfResume({ db, nodes, durablePauses: files }, stored, withMemory)).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/it has no driver gvisor\)$/),
    });
});

test('if its own machine merely lacks room, a resume can be tried later', async () => {
  const nodes = machines({ nodeId: 'home' }, { nodeId: 'other', agent: 'b2' });
  await expect(place(nodes, stored, full('home'))).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('its machine has no room (home is full). no other machine takes it'),
    detail: nodeFull,
  });
  const away = place(machines({ nodeId: 'other' }), stored, full('other'));
  await expect(away).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('its machine is away. No machine takes a new sandbox'),
    detail: nodeFull,
  });
});
