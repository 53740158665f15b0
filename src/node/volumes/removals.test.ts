import { expect, test } from 'bun:test';
import { createRemovals } from './removals.ts';

const settled = () => new Promise(resolve => setImmediate(resolve));

/** Parts of removals that end when the test says so, and the list of those that have begun. */
function removalsOf() {
  const removals = createRemovals();
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<void>>();
  return {
    begun,
    ask(part: string, of: { volumeId: string; teamId: string | undefined }) {
      ends.set(part, Promise.withResolvers<void>());
      void removals(of, async () => {
        begun.push(part);
        await ends.get(part)?.promise;
      });
    },
    async end(part: string) {
      ends.get(part)?.resolve();
      await settled();
    },
  };
}

test('a removal from one volume does not wait for a team that removes from a hundred', async () => {
  const { begun, ask, end } = removalsOf();
  for (let n = 0; n < 100; n++) ask(`many ${n}`, { volumeId: `many-${n}`, teamId: 'many' });
  await settled();
  expect(begun).toEqual(Array.from({ length: 6 }, (_, n) => `many ${n}`));
  ask('one', { volumeId: 'one', teamId: 'one' });
  ask('two', { volumeId: 'two', teamId: 'two' });
  await settled();
  expect(begun.slice(6)).toEqual(['one', 'two']);
  // The next free place goes to a team without one, and not to the ninety that have waited for longer.
  ask('three', { volumeId: 'three', teamId: 'three' });
  await end('many 3');
  expect(begun.slice(8)).toEqual(['three']);
  for (const part of ['one', 'two', 'three']) await end(part);
  expect(begun.slice(9)).toEqual(['many 6']);
});

test('removals from one volume take turns, whoever asks for them', async () => {
  const { begun, ask, end } = removalsOf();
  for (const [part, teamId] of [
    ['first', 'a'],
    ['second', undefined],
    ['third', 'b'],
  ] as const)
    ask(part, { volumeId: 'v', teamId });
  await settled();
  expect(begun).toEqual(['first']);
  await end('first');
  expect(begun).toEqual(['first', 'second']);
  await end('second');
  expect(begun).toEqual(['first', 'second', 'third']);
});
