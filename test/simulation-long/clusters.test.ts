import { expect, setDefaultTimeout, test } from 'bun:test';
import { simulateSeeds } from '../simulation/support/seeds.ts';

// The same simulation as in every run of the tests, with so many seeds that it also meets rare events. It is a suite of
// its own, because the simulation replaces the process's clock and PostgreSQL.

setDefaultTimeout(35 * 60_000);
const seeds = 10_000;

test(`${seeds} simulated clusters lose nothing, run nothing twice, and come to rest`, async () => {
  const first = 1_000;
  const atOnce = 100;
  for (let seed = first; seed < first + seeds; seed += atOnce)
    expect(await simulateSeeds(seed, atOnce)).toHaveLength(atOnce);
});
