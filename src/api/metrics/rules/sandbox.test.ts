import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import type { NodeProtocol } from '../../../protocol/node.ts';
import { putClusterNode } from '../../cluster/store/nodes.ts';
import { openStore } from '../../database/database.ts';
import type { Nodes } from '../../placement/nodes.ts';
import { recordHome, recordPastSandbox } from '../../sandbox/store/past.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { checkRange, readLatestSamples, readSamples } from './sandbox.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const team = (slug: string) => createTeam({ db, clock: () => 1 }, { name: slug, slug });
const [mine, theirs] = [await team('mine'), await team('theirs')];
/** `moved` was on `b` before it was on `a`. */
const places = { moved: 'a', here: 'a', there: 'b' };
for (const [sandbox_id, node_id] of Object.entries(places))
  await recordPastSandbox(db, { sandbox_id, node_id, team_id: mine.teamId, ended_at_us: 1 });
const joined = { address: 'b:1', certificates: [], renewAtUs: 1, joinedAtUs: 1 };
await putClusterNode(db, { ...joined, nodeId: 'b' }, null);
await recordHome(db, { sandboxId: 'moved', nodeId: 'b', leftAtUs: 1 });

/** Machines that have taken one sample of each sandbox, at the second in `at`, and the requests to them. */
function machines(at: Record<string, number | AtollError>, isCluster = true) {
  const asked: unknown[] = [];
  const answer = (nodeId: string) => {
    const said = at[nodeId];
    if (typeof said !== 'number') throw said ?? new Error(`nobody should ask ${nodeId}`);
    return said;
  };
  const get = (nodeId: string) =>
    ({
      samples: async (sandboxId: string, range: object) => {
        asked.push([nodeId, sandboxId, range]);
        return [{ atSeconds: answer(nodeId) }];
      },
      latestSamples: async (ids: string[]) => {
        asked.push([nodeId, ids.toSorted()]);
        return Object.fromEntries(ids.map(id => [id, { atSeconds: answer(nodeId) }]));
      },
    }) as unknown as NodeProtocol;
  const nodes: Nodes = { list: () => [], get, ...(isCluster && { away: () => [] }) };
  return { deps: { db, nodes }, asked };
}

const away = new AtollError('unavailable', 'it is out of reach');
const at = (...seconds: number[]) => seconds.map(atSeconds => ({ atSeconds }));

test('a range that ends before it begins is refused', () => {
  for (const range of [{}, { start: 2 }, { end: 1 }, { start: 2, end: 2 }]) checkRange(range);
  expect(() => checkRange({ start: 2, end: 1 })).toThrow('start: must not be after end (2 > 1)');
});

test('samples of all machines that a sandbox was on are combined, the oldest first', async () => {
  const { deps, asked } = machines({ a: 20, b: 10 });
  expect(await readSamples(deps, mine, 'moved', { start: 5, end: 30 })).toEqual({
    samples: at(10, 20) as never,
    isPartial: false,
  });
  const range = { startSeconds: 5, endSeconds: 30, pointsMax: 1_000 };
  expect(asked).toEqual([
    ['a', 'moved', range],
    ['b', 'moved', range],
  ]);
});

test('the samples of a machine that is away are missing, and the answer says so', async () => {
  const { deps } = machines({ a: away, b: 10 });
  expect(await readSamples(deps, mine, 'moved', {})).toEqual({ samples: at(10) as never, isPartial: true });
  expect(await readLatestSamples(deps, mine, ['moved', 'there'])).toEqual({
    samples: { there: { atSeconds: 10 } } as never,
    isPartial: true,
  });
});

test('a single machine is no cluster: its failure is the request’s', async () => {
  const { deps } = machines({ a: 20 }, false);
  expect(await readSamples(deps, mine, 'moved', {})).toMatchObject({ samples: at(20) });
  await expect(readSamples(machines({ a: away }, false).deps, mine, 'moved', {})).rejects.toBe(away);
  const broken = new AtollError('internal', 'it is broken');
  await expect(readSamples(machines({ a: broken }).deps, mine, 'here', {})).rejects.toBe(broken);
});

test('other teams get none of them', async () => {
  const { deps, asked } = machines({ a: 20, b: 10 });
  expect(await readSamples(deps, theirs, 'moved', {})).toEqual({ samples: [], isPartial: false });
  expect(await readLatestSamples(deps, theirs, ['moved'])).toEqual({ samples: {}, isPartial: false });
  expect(asked).toEqual([]);
});

test('the latest samples are requested from each machine at once, and answered by the IDs in the request', async () => {
  const { deps, asked } = machines({ a: 20, b: 10 });
  expect(await readLatestSamples(deps, mine, ['moved', 'here-client', 'there', 'unknown'])).toEqual({
    samples: { moved: { atSeconds: 20 }, 'here-client': { atSeconds: 20 }, there: { atSeconds: 10 } } as never,
    isPartial: false,
  });
  expect(asked).toEqual([
    ['a', ['here', 'moved']],
    ['b', ['there']],
  ]);
});

test('a request with an invalid sandbox ID, or with one twice, is refused', async () => {
  const { deps } = machines({});
  await expect(readLatestSamples(deps, mine, ['here', 'here-client'])).rejects.toThrow('sandbox_ids: must be unique');
  for (const work of [() => readLatestSamples(deps, mine, ['A!']), () => readSamples(deps, mine, 'A!', {})])
    await expect(work()).rejects.toMatchObject({ code: 'invalid' });
  await expect(readSamples(deps, mine, 'here', { start: 2, end: 1 })).rejects.toThrow('start: must not');
});
