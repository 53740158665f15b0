import { expect, test } from 'bun:test';
import { silentLog } from '../../base/log.ts';
import { createReleases } from './releases.ts';

test('what can’t be removed is tried again, and stopping waits for what is under way', async () => {
  const releases = createReleases(silentLog);
  const tries: string[] = [];
  releases.begin('s1', async () => {
    tries.push('s1');
    if (tries.length === 1) throw new Error('busy');
  });
  expect(releases.underWay()).toBe(true);
  await releases.next();
  expect(tries).toEqual(['s1', 's1']);
  expect(releases.underWay()).toBe(false);

  const freed = Promise.withResolvers<void>();
  let gone = false;
  releases.begin('s2', () => freed.promise.then(() => void (gone = true)));
  const stopped = releases.stop();
  freed.resolve();
  await stopped;
  expect(gone).toBe(true);
});

test('after stopping, what still can’t be removed is left to the next start', async () => {
  const releases = createReleases(silentLog);
  let tries = 0;
  releases.begin('s1', async () => {
    tries++;
    throw new Error('busy');
  });
  await releases.stop();
  expect(tries).toBeLessThanOrEqual(2);
});
