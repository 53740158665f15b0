import { expect, test } from 'bun:test';
import type { Helper } from '../native/helper.ts';
import type { SpawnResult } from '../native/operations.ts';
import { removeEntry } from './change-content.ts';

const killed = { status: 137, output: '' };
const done = { status: 0, output: '' };
const missing = { status: 1, output: '2 tree: No such file or directory' };

/** Removes an entry by a program that ends as given, run after run, and answers how many turns it had. */
async function remove(...ends: SpawnResult[]): Promise<number> {
  let turns = 0;
  const helper = { spawn: async () => ends[turns - 1] ?? done } as unknown as Helper;
  const inTurn = <T>(work: () => Promise<T>) => (turns++, work());
  await removeEntry({ helper, helperBinary: '/helper' }, '/mounts/volume/data', 'tree', inTurn);
  return turns;
}

test('a removal that takes long continues after others have had their turn', async () => {
  expect(await remove(killed, killed, done)).toBe(3);
});

test('the part of a removal that was killed may have been the last one', async () => {
  expect(await remove(killed, missing)).toBe(2);
  await expect(remove(missing)).rejects.toMatchObject({ code: 'not_found' });
});

test('a removal that fails is not tried again', async () => {
  const failed = { status: 1, output: '5 tree: Input/output error' };
  await expect(remove(killed, failed, done)).rejects.toMatchObject({ code: 'internal' });
});
