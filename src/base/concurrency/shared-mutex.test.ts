import { expect, test } from 'bun:test';
import { SharedMutex } from './shared-mutex.ts';

const turn = () => new Promise(resolve => setImmediate(resolve));

/** Work that says when it began, and ends when it is told to. */
function piece(begun: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const work = async () => {
    begun.push(name);
    await promise;
    return name;
  };
  return { work, end: resolve, fail: () => reject(new Error(name)) };
}

test('those that share a key run beside each other; work that runs alone begins when the last has ended', async () => {
  const mutex = new SharedMutex<string>();
  const begun: string[] = [];
  const [one, two, alone] = ['one', 'two', 'alone'].map(name => piece(begun, name)) as [Piece, Piece, Piece];
  const shared = [mutex.share('a', one.work), mutex.share('a', two.work)];
  const after = mutex.alone('a', alone.work);
  await turn();
  expect(begun).toEqual(['one', 'two']);
  one.end();
  await turn();
  expect(begun).toEqual(['one', 'two']);
  two.fail();
  await expect(shared[1]).rejects.toThrow('two');
  await turn();
  expect(begun).toEqual(['one', 'two', 'alone']);
  alone.end();
  expect(await Promise.all([shared[0], after])).toEqual(['one', 'alone']);
});

test('work that comes after a waiting lone task waits for that; other keys do not', async () => {
  const mutex = new SharedMutex<string>();
  const begun: string[] = [];
  const [first, alone, late, other] = ['first', 'alone', 'late', 'other'].map(name => piece(begun, name)) as Piece[];
  const all = [
    mutex.share('a', first!.work),
    mutex.alone('a', alone!.work),
    mutex.share('a', late!.work),
    mutex.alone('b', other!.work),
  ];
  await turn();
  expect(begun.toSorted()).toEqual(['first', 'other']);
  first!.end();
  await turn();
  expect(begun.slice(2)).toEqual(['alone']);
  alone!.end();
  await turn();
  expect(begun.slice(2)).toEqual(['alone', 'late']);
  late!.end();
  other!.end();
  await Promise.all(all);
});

test('work that fails alone lets the next one in', async () => {
  const mutex = new SharedMutex<number>();
  await expect(mutex.alone(1, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(await mutex.share(1, async () => 'in')).toBe('in');
});

type Piece = ReturnType<typeof piece>;
