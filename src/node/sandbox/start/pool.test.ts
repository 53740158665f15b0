import { expect, test } from 'bun:test';
import { silentLog } from '../../../base/telemetry/log.ts';
import { createPool } from './pool.ts';

test('a standby sandbox that ends and can’t be removed at once is replaced', async () => {
  const started: PromiseWithResolvers<void>[] = [];
  const start = async () => {
    const ended = Promise.withResolvers<void>();
    started.push(ended);
    return { processes: { ended: ended.promise }, layers: null };
  };
  let removals = 0;
  const parts = { starts: { run: start }, layers: { beforeRemoval: () => {} }, layout: {} };
  const pool = createPool(
    parts as unknown as Parameters<typeof createPool>[0],
    {
      size: 1,
      resources: {},
      driver: {},
      awaited: () => 0,
      log: silentLog,
      processControl: {
        release: async () => {
          removals++;
          throw new Error('its mount is in use');
        },
      },
    } as unknown as Parameters<typeof createPool>[1],
  );
  while (pool.counts().ready < 1) await Bun.sleep(1);
  started[0]?.resolve();
  while (started.length < 2 || pool.counts().ready < 1) await Bun.sleep(1);
  expect(removals).toBe(1);
  expect(pool.counts()).toMatchObject({ refills: 2, failures: 0 });
  await pool.stop();
  expect(removals).toBe(2);
});
