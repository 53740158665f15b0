import { expect, test } from 'bun:test';
import { silentLog } from '../../../base/telemetry/log.ts';
import { createCleanups } from './cleanups.ts';

test('what can’t be removed is tried again, and stopping waits for what is under way', async () => {
  const cleanups = createCleanups(silentLog);
  const tries: string[] = [];
  cleanups.begin('s1', async () => {
    tries.push('s1');
    if (tries.length === 1) throw new Error('busy');
  });
  expect(cleanups.underWay()).toBe(true);
  await cleanups.next();
  expect(tries).toEqual(['s1', 's1']);
  expect(cleanups.underWay()).toBe(false);

  const freed = Promise.withResolvers<void>();
  let gone = false;
  cleanups.begin('s2', () => freed.promise.then(() => void (gone = true)));
  const stopped = cleanups.stop();
  freed.resolve();
  await stopped;
  expect(gone).toBe(true);
});

test('after stopping, what still can’t be removed is left to the next start', async () => {
  const cleanups = createCleanups(silentLog);
  let tries = 0;
  cleanups.begin('s1', async () => {
    tries++;
    throw new Error('busy');
  });
  await cleanups.stop();
  expect(tries).toBeLessThanOrEqual(2);
});
