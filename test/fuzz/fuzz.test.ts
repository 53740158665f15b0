import { expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { runCampaign, runOnce } from './engine/campaign.ts';
import { keptFolder, readKept } from './engine/kept.ts';
import { superlinear } from './engine/linear.ts';
import { targets } from './targets.ts';

/**
 * Enough to see that a target still works; `npm run fuzz` does the searching. The inputs are always the same, so that a
 * failure comes from the change.
 */
const runs = 2_000;
const seed = 'npm test';
const timeoutMs = 60_000;

test('every parser has a target, and what was kept belongs to one', () => {
  const names = targets.map(({ name }) => name);
  expect(names.length).toBeGreaterThanOrEqual(25);
  expect(new Set(names).size).toBe(names.length);
  expect(readdirSync(keptFolder).filter(name => !names.includes(name))).toEqual([]);
  expect(readdirSync(keptFolder).length).toBeGreaterThan(3);
});

for (const target of targets) {
  test(
    `${target.name}: what failed once fails no more`,
    async () => {
      const { inputs, pumps } = readKept(target.name);
      for (const { file, bytes } of inputs) {
        const result = await runOnce(target, bytes);
        if ('failed' in result) throw new Error(`${file}: ${result.failed}`);
      }
      for (const { file, pump } of pumps)
        expect(`${file}: ${await superlinear(target, pump)}`).toBe(`${file}: undefined`);
    },
    timeoutMs,
  );

  test(
    `${target.name}: ${runs} inputs`,
    async () => {
      const { failure, outcomes } = await runCampaign(target, { seed, runsMax: runs });
      if (failure)
        throw new Error(
          `${failure.reason}\n${JSON.stringify('input' in failure ? failure.input.toString('latin1') : failure.pump)}`,
        );
      // A check that every input leaves at its first line would always pass.
      expect(outcomes.size).toBeGreaterThan(1);
    },
    timeoutMs,
  );
}
