import { expect, test } from 'bun:test';
import { createLog, silentLog } from '../telemetry/log.ts';
import { startLoop } from './loop.ts';

const name = 'test';

test('a loop runs at once, again after each interval, and never twice at a time', async () => {
  let [runs, atOnce, most] = [0, 0, 0];
  const done = Promise.withResolvers<void>();
  const loop = startLoop({
    name,
    intervalMs: () => 1,
    log: silentLog,
    async run() {
      most = Math.max(most, ++atOnce);
      if (++runs === 5) done.resolve();
      await Bun.sleep(2);
      atOnce--;
    },
  });
  await done.promise;
  await loop.stop();
  const after = runs;
  // A window in which a loop that went on would have run ten times.
  await Bun.sleep(10);
  expect({ runs, most }).toEqual({ runs: after, most: 1 });
});

test('a failure is logged with its cause', async () => {
  const said = Promise.withResolvers<string>();
  const loop = startLoop({
    name,
    intervalMs: () => 3_600_000,
    log: createLog('warn', said.resolve),
    run: () => Promise.reject(new Error('no answer', { cause: new Error('the password is wrong') })),
  });
  expect(JSON.parse(await said.promise)).toMatchObject({ error: 'no answer', cause: 'the password is wrong' });
  await loop.stop();
});

test('a failure does not end it, waking runs it now, stopping waits for the run under way', async () => {
  let [runs, ended] = [0, 0];
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const loop = startLoop({
    name,
    intervalMs: () => 3_600_000,
    log: silentLog,
    async run() {
      if (++runs === 1) {
        first.resolve();
        throw new Error('once');
      }
      second.resolve();
      await Bun.sleep(20);
      ended++;
    },
  });
  await first.promise;
  loop.wake();
  await second.promise;
  await loop.stop();
  expect({ runs, ended }).toEqual({ runs: 2, ended: 1 });
});
