import { expect, test } from 'bun:test';
import { KeyedMutex } from './keyed-mutex.ts';

const turn = () => new Promise(resolve => setImmediate(resolve));

test('work on one key runs one at a time, in order, also behind work that fails; other keys do not wait', async () => {
  const mutex = new KeyedMutex<string>();
  const ends = [0, 1, 2].map(() => Promise.withResolvers<void>());
  const begun: string[] = [];
  const runs = ends.map(({ promise }, index) =>
    mutex.run('a', async () => {
      begun.push(`a${index}`);
      await promise;
      return index;
    }),
  );
  expect(await mutex.run('b', async () => 'b')).toBe('b');
  expect(begun).toEqual(['a0']);
  ends[0]?.reject(new Error('failed'));
  expect(runs[0]).rejects.toThrow('failed');
  await turn();
  expect(begun).toEqual(['a0', 'a1']);
  ends[1]?.resolve();
  ends[2]?.resolve();
  expect(await Promise.all(runs.slice(1))).toEqual([1, 2]);
  expect(begun).toEqual(['a0', 'a1', 'a2']);
});

test('a key is forgotten when nobody holds it or waits for it', async () => {
  const mutex = new KeyedMutex<number>();
  const held = await mutex.lock(1);
  const next = mutex.lock(1);
  held[Symbol.dispose]();
  const second = await next;
  await turn();
  expect(mutex.has(1)).toBe(true);
  second[Symbol.dispose]();
  await turn();
  expect(mutex.has(1)).toBe(false);
});
