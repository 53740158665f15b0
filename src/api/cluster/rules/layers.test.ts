import { expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import type { Machine } from '../../../protocol/cluster.ts';
import type { CreateSandbox } from '../../../protocol/node.ts';
import { withContent } from './layers.ts';

/** A node that has some layers, and the calls to it. */
function nodeWith(here: Set<string>) {
  const creates: CreateSandbox[] = [];
  const brought: string[][] = [];
  const node = {
    async create(request: CreateSandbox) {
      creates.push(request);
      const { layers, started } = request.image;
      for (const digest of [...layers, ...(started?.layers ?? [])])
        if (!here.has(digest)) throw new AtollError('not_found', `layer ${digest} is not on this node`);
    },
    listSnapshots: async () => [{ snapshotId: 'kept' }],
  };
  const bring = {
    memory: async () => true,
    async layers(digests: readonly string[]) {
      brought.push([...digests]);
      for (const digest of digests) here.add(digest);
    },
  };
  return { creates, brought, create: withContent({ node } as unknown as Machine, bring).create };
}

const asking = (image: object) => ({ sandboxId: 's', image: { layers: ['a', 'b'], ...image } }) as never;

test('a node that has the layers is only asked for the sandbox', async () => {
  const { creates, brought, create } = nodeWith(new Set(['a', 'b']));
  await create(asking({}));
  expect([creates.length, brought]).toEqual([1, []]);
});

test('a node gets the layers that it lacks, and is asked again', async () => {
  const { creates, brought, create } = nodeWith(new Set(['a']));
  await create(asking({}));
  expect([creates.length, brought]).toEqual([2, [['a', 'b']]]);
});

test('the layers under a started server are there before the node is asked', async () => {
  const { creates, brought, create } = nodeWith(new Set(['a', 'b']));
  await create(asking({ started: { snapshotId: 'kept', layers: ['a', 'c'] } }));
  expect([creates.length, brought]).toEqual([1, [['a', 'c']]]);
});

test('a create that fails for another reason is not tried again', async () => {
  const full = new AtollError('unavailable', 'no slot');
  let asked = 0;
  const node = { create: () => Promise.reject((asked++, full)) } as unknown as Machine['node'];
  const bring = { memory: async () => true, layers: () => Promise.reject(new Error('nothing is to be brought')) };
  await expect(withContent({ node } as Machine, bring).create(asking({}))).rejects.toBe(full);
  expect(asked).toBe(1);
});
