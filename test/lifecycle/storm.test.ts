import { expect, test } from 'bun:test';
import { startPlatform } from '../support/platform.ts';
import { frozenSeconds, runStorm } from './support/storm.ts';

const seed = Number(process.env['STORM_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
/** Number of answered operations. `npm run prove` has far more, with more clients, and kills each process. */
const operations = Number(process.env['STORM_OPERATIONS'] ?? 60);
const perStrike = 15;

test(
  `kill -9 at random points of ${operations} mixed operations loses nothing that was answered (STORM_SEED=${seed})`,
  async () => {
    await using platform = await startPlatform({
      ATOLL_POOL_SIZE: process.env['ATOLL_POOL_SIZE'] ?? '0',
      ATOLL_FROZEN_SECONDS: String(frozenSeconds),
    });
    const { strikes } = await runStorm(platform, { seed, operations, perStrike, clients: 3, victims: ['platform'] });
    expect(strikes['platform'] ?? 0).toBeGreaterThanOrEqual(Math.floor(operations / (2 * perStrike)));
  },
  30 * 60_000,
);
