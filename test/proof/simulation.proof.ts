import { expect, test } from 'bun:test';
import { simulateSeeds } from '../simulation/support/seeds.ts';
import type { Outcome } from '../simulation/support/simulate.ts';
import { circumstances, writeSection } from './support/report.ts';
import { numberOf } from './support/settings.ts';

// `npm run prove -- simulation`: clusters that are simulated, of so many seeds. It fails at the first one in which
// something that must hold did not, and tells the shortest history of it that was found.

const seeds = numberOf('PROOF_SEEDS', 10_000);
const first = numberOf('PROOF_SEED', Math.floor(Math.random() * 2 ** 31));
/** Seeds that share a database. */
const atOnce = 100;

type Sums = Pick<Outcome, 'answered' | 'moves' | 'databaseFaults'>;

test(`${seeds} simulated clusters lose nothing, run nothing twice, and come to rest (PROOF_SEED=${first})`, async () => {
  const startedAt = new Date();
  const minutes = () => (Date.now() - startedAt.getTime()) / 60_000;
  const sums: Sums = { answered: 0, moves: 0, databaseFaults: 0 };
  for (let done = 0; done < seeds; done += atOnce) {
    const outcomes = await simulateSeeds(first + done, Math.min(atOnce, seeds - done));
    for (const outcome of outcomes)
      for (const key of ['answered', 'moves', 'databaseFaults'] as const) sums[key] += outcome[key];
    console.log(`${minutes().toFixed(1)} min: ${done + outcomes.length} clusters, ${sums.answered} requests answered`);
  }
  // Runs in which little was done would show little.
  expect(sums.answered).toBeGreaterThan(5 * seeds);
  writeSection('Simulated clusters', report(sums, startedAt, minutes()));
});

function report({ answered, moves, databaseFaults }: Sums, startedAt: Date, took: number): string {
  return `
What decides where sandboxes are (placement, leases, fencing, pauses into the store, moves, drains, adoption) runs as it is, on machines,
a network, a clock and faults of the database that are simulated: two control processes, three machines, three clients that create,
pause, store, resume, move and kill for 45 s. The seed decides what fails when: machines are cut off from one control process or from
all, restarted, destroyed, drained, stand still with their clocks or without, have clocks of a wrong speed and full disks; control processes
are killed, stand still, and are wrong about the database's time; the database is away, or makes a change and does not say so. What is checked at every moment: that a sandbox runs once, and that a killed one does not run (but for what docs/cluster.md
says of a machine that stood still); when all has healed: that rows, sandboxes and routes are the same, and that what was answered is there.

| | |
|---|---|
${circumstances(startedAt)}
| Seeds | ${seeds.toLocaleString('en')} from ${first} on, in ${took.toFixed(0)} min |
| Requests answered · moves among them | ${answered.toLocaleString('en')} · ${moves.toLocaleString('en')} |
| Faults of the database that a process met | ${databaseFaults.toLocaleString('en')} |
| Seeds in which something did not hold | 0 |
`;
}
