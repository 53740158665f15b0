import { expect, test } from 'bun:test';
import { availableParallelism } from 'node:os';
import { circumstances, writeSection } from './support/report.ts';
import { numberOf } from './support/settings.ts';
import { type Sums, sumOf } from './simulation/sums.ts';

// `npm run prove -- simulation`: simulated clusters, for a number of seeds, on all processors. It fails at the first
// one in which an invariant did not hold, and prints the shortest history found for it.

const seeds = numberOf('PROOF_SEEDS', 10_000);
const first = numberOf('PROOF_SEED', Math.floor(Math.random() * 2 ** 31));
/** After this many minutes, no further cluster is begun. */
const minutesMax = numberOf('PROOF_MINUTES', 24 * 60);
/** Seeds that share a database. */
const inBlock = 100;

test(`${seeds} simulated clusters lose nothing, run nothing twice, and come to rest (PROOF_SEED=${first})`, async () => {
  const startedAt = new Date();
  const minutes = () => (Date.now() - startedAt.getTime()) / 60_000;
  const blocks = Array.from({ length: Math.ceil(seeds / inBlock) }, (_, index) => index * inBlock);
  let ended = 0;
  const onOneProcessor = async () => {
    using worker = startWorker();
    const parts: Sums[] = [];
    for (let begun = blocks.shift(); begun !== undefined && minutes() < minutesMax; begun = blocks.shift()) {
      const count = Math.min(inBlock, seeds - begun);
      parts.push(await worker.simulate(first + begun, count));
      console.log(`${minutes().toFixed(1)} min: ${(ended += count)} of ${seeds} clusters`);
    }
    return sumOf(parts);
  };
  const sums = sumOf(await Promise.all(Array.from({ length: availableParallelism() }, onOneProcessor)));
  // Runs in which little was done would prove little.
  expect(sums.answered).toBeGreaterThan(5 * ended);
  writeSection('Simulated clusters', report(sums, { startedAt, ended, took: minutes() }));
});

function startWorker(): Disposable & { simulate(first: number, count: number): Promise<Sums> } {
  const worker = new Worker(new URL('simulation/worker.ts', import.meta.url));
  return {
    simulate(from, count) {
      const { promise, resolve, reject } = Promise.withResolvers<Sums>();
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage({ first: from, count });
      return promise;
    },
    [Symbol.dispose]: () => worker.terminate(),
  };
}

type Run = { startedAt: Date; ended: number; took: number };

function report({ answered, moves, databaseFaults }: Sums, { startedAt, ended, took }: Run): string {
  return `
The code that decides where sandboxes are (placement, leases, fencing, pauses into the store, moves, drains, adoption)
runs as it is. Machines, network, clock and faults of the database are simulated: two control processes, three machines,
and three clients that create, pause, store, resume, move and kill for 45 s.

The seed decides what fails when. Machines are cut off from one control process or from all, restarted, destroyed,
drained, stand still with their clocks or without, have clocks of a wrong speed and full disks. Control processes are
killed, stand still, and are wrong about the database's time. The database is away, or makes a change and does not say
so.

Checked at every moment: a sandbox runs once, and a killed one does not run (except as docs/cluster.md says of a machine
that stood still). Checked when all has healed: rows, sandboxes and routes are the same, and what was answered is
there.

| | |
|---|---|
${circumstances(startedAt)}
| Seeds | ${ended.toLocaleString('en')} from ${first} on, in ${took.toFixed(0)} min |
| Requests answered · moves among them | ${answered.toLocaleString('en')} · ${moves.toLocaleString('en')} |
| Faults of the database that a process met | ${databaseFaults.toLocaleString('en')} |
| Seeds in which something did not hold | 0 |
`;
}
