import { expect, test } from 'bun:test';
import { createFairSemaphore } from './fair-semaphore.ts';

const settled = () => new Promise(resolve => setImmediate(resolve));

/** Tasks that end when the test says so; also tells which have begun. */
function tasksOf(semaphore: ReturnType<typeof createFairSemaphore>) {
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<void>>();
  return {
    begun,
    ask(name: string, owner: { of: string | undefined } = { of: name[0] }) {
      const end = Promise.withResolvers<void>();
      ends.set(name, end);
      return semaphore.run(owner.of, () => {
        begun.push(name);
        return end.promise;
      });
    },
    async end(name: string) {
      ends.get(name)?.resolve();
      await settled();
    },
  };
}

test('one owner has all places, in the order in which it asked, and none of those that are spare', async () => {
  const semaphore = createFairSemaphore(2, 2);
  const { begun, ask, end } = tasksOf(semaphore);
  const all = ['a1', 'a2', 'a3', 'a4'].map(name => ask(name));
  await settled();
  expect([begun, semaphore.waiting()]).toEqual([['a1', 'a2'], 2]);
  await end('a2');
  expect(begun).toEqual(['a1', 'a2', 'a3']);
  for (const name of ['a1', 'a3', 'a4']) await end(name);
  await Promise.all(all);
  expect(begun).toEqual(['a1', 'a2', 'a3', 'a4']);
});

test('an owner with none running waits for no other owner, as long as places are spare', async () => {
  const { begun, ask, end } = tasksOf(createFairSemaphore(2, 1));
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) void ask(name);
  await settled();
  expect(begun).toEqual(['a1', 'a2', 'b1']);
  // Only the spare place is free again, for an owner with no running task.
  await end('b1');
  expect(begun).toEqual(['a1', 'a2', 'b1', 'c1']);
});

test('a free place goes to the owner with the fewest tasks, and then to the one served longest ago', async () => {
  const { begun, ask, end } = tasksOf(createFairSemaphore(3, 0));
  for (const name of ['a1', 'a2', 'b1', 'a3', 'a4', 'b2', 'c1', 'd1']) void ask(name);
  await settled();
  expect(begun).toEqual(['a1', 'a2', 'b1']);
  for (const name of ['a1', 'b1', 'a2', 'c1', 'd1', 'b2']) await end(name);
  expect(begun.slice(3)).toEqual(['c1', 'd1', 'a3', 'b2', 'a4']);
});

test('tasks without a known owner count as one owner’s', async () => {
  const { begun, ask } = tasksOf(createFairSemaphore(1, 1));
  void ask('x', { of: undefined });
  void ask('y', { of: undefined });
  void ask('z');
  await settled();
  expect(begun).toEqual(['x', 'z']);
});

test('a task that fails makes room for the next', async () => {
  const semaphore = createFairSemaphore(1, 0);
  await expect(semaphore.run('a', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(await semaphore.run('b', async () => 7)).toBe(7);
  expect(semaphore.waiting()).toBe(0);
});
