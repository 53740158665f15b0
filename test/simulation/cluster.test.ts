import { expect, setDefaultTimeout, test } from 'bun:test';
import type { SimMachine } from './support/machine.ts';
import { simulateSeeds } from './support/seeds.ts';
import { Violation } from './support/simulate.ts';

// The code that decides where sandboxes are, against simulated machines, network, clock and database faults: the seed
// decides everything.

setDefaultTimeout(20 * 60_000);
const seeds = Number(process.env['SIMULATION_SEEDS'] ?? 20);
const first = Number(process.env['SIMULATION_SEED'] ?? 1);

test(`${seeds} clusters lose nothing, run nothing twice, and come to rest (SIMULATION_SEED repeats one)`, async () => {
  const outcomes = await simulateSeeds(first, seeds);
  const sum = (of: 'answered' | 'moves' | 'databaseFaults') => outcomes.reduce((all, outcome) => all + outcome[of], 0);
  // Runs in which little was done would prove little.
  expect(sum('answered')).toBeGreaterThan(5 * seeds);
  expect(sum('moves')).toBeGreaterThan(seeds / 2);
  expect(sum('databaseFaults')).toBeGreaterThan(seeds);
});

test('a seed comes to the same again', async () => {
  const [one] = await simulateSeeds(first, 1);
  const [two] = await simulateSeeds(first, 1);
  expect(one?.events.split('\n').length).toBeGreaterThan(10);
  expect(namesOut(two?.events ?? '')).toBe(namesOut(one?.events ?? ''));
});

test('seeds with which something did not hold once', async () => {
  // A machine that had stood still was asked to resume what control counted as paused while the machine still ran it.
  await simulateSeeds(20_129, 1);
  // A disconnected machine had paused everything that ran when a resume that had begun earlier completed.
  await simulateSeeds(20_161, 1);
  // A machine that had stood still completed the start of a sandbox that was killed meanwhile, before it was heard of.
  await simulateSeeds(21_238, 1);
  // The same for a resume that control had undone on another machine.
  await simulateSeeds(204_395, 1);
  // A machine that had stood still together with its clock received, when it went on, what had been sent to it before.
  await simulateSeeds(40_750, 1);
  // A control process stood still while the machine of its resume was given up and came back, and only then sent its
  // request.
  await simulateSeeds(509_620, 1);
  // A machine stood still with its clock after a move whose control process had ended before it heard of the move's
  // end.
  await simulateSeeds(1_002_382, 1);
  // The same, but its clock went on: until its gate looked at the clock, it ran what had meanwhile been brought back
  // elsewhere.
  await simulateSeeds(1_015_718, 1);
  // A control process was taken for dead in a move, began another one of the same sandbox, and took its row for both.
  await simulateSeeds(1_002_829, 1);
});

test('of a failure the shortest history is told that was found', async () => {
  // A machine that confirms kills without killing: a create and a kill reveal it.
  const liar = (machine: SimMachine) => void Object.assign(machine.service.node, { kill: async () => {} });
  const failure = await simulateSeeds(first, 1, liar).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(Violation);
  if (!(failure instanceof Violation)) return;
  expect(failure.message).toMatch(/I2: i\w+ was killed and runs/);
  expect(failure.message).toMatch(/create i\w+ on node-\d[\s\S]*kill i\w+/);
  expect(failure.actions).toBeLessThanOrEqual(6);
});

/** IDs are random: the first one named becomes 1. */
function namesOut(events: string): string {
  const names = new Map<string, number>();
  return events.replaceAll(/\bi[a-z0-9]{20}\b/g, id => {
    const number = names.get(id) ?? names.size + 1;
    names.set(id, number);
    return `#${number}`;
  });
}
