import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import type { NodeProtocol } from '../../../protocol/node.ts';
import { openStore } from '../../database/database.ts';
import { adoptVolume, discardSandbox, discardVolume, listOrphans } from './orphans.ts';

const store = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());

/** A machine that has one sandbox and one volume that nobody knows, or does not answer. */
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
  db: store.db,
  nodes: {
    list: () => ids.map(id => machine(id, answering)),
    get: () => Promise.reject(new Error('nobody is asked')) as never,
    away: () => away.map(nodeId => ({ nodeId, isConnecting: false, sinceUs: 0, info: null })),
  },
});

test('machines are asked side by side, and what they keep is listed in their order', async () => {
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

test('one that does not answer, or is away, is told of, and the others are listed', async () => {
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
  // What was not found may be there.
  const refusal = { code: 'unavailable', message: expect.stringContaining('away, b') };
  await expect(discardSandbox(deps, 'sandbox-b')).rejects.toMatchObject(refusal);
  await expect(discardVolume(deps, 'volume-b')).rejects.toMatchObject(refusal);
});

test('what no machine has is not found where all have answered', async () => {
  const deps = { ...depsOf(async () => {}), limitsOf: () => ({}) as never };
  await expect(discardSandbox(deps, 'none')).rejects.toMatchObject({ code: 'not_found' });
  await expect(adoptVolume(deps, {} as never, 'none', 'name')).rejects.toMatchObject({ code: 'not_found' });
});
