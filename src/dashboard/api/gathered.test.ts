import { expect, test } from 'bun:test';
import { gathered } from './gathered.ts';

test('paths that come during a run are in the next one, together and once', async () => {
  const runs: string[][] = [];
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  const stop = new AbortController();
  const add = gathered(async stale => {
    runs.push(stale);
    if (runs.length === 1) await first.promise;
    else second.resolve();
  }, stop.signal);
  add(['a']);
  add(['b', 'c']);
  add(['b']);
  expect(runs).toEqual([['a']]);
  first.resolve();
  await second.promise;
  expect(runs).toEqual([['a'], ['b', 'c']]);
  stop.abort();
});
