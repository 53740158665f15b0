import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killIfThere } from '../../src/base/if-there.ts';
import { randomOf } from '../api/random.ts';
import { holdingsOf } from '../support/leaks.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';
import { workOnce } from './power/clients.ts';
import { Ledger, lookerOf } from './power/ledger.ts';
import { type Faults, LossyDisks } from './power/lossy-disk.ts';
import { expectClear, lookFor, recovers } from './support/after-trouble.ts';
import { circumstances, writeSection } from './support/report.ts';
import { numberOf } from './support/settings.ts';

// The data directory is on a disk that fails for some seconds, again and again, while clients work: it refuses writes
// or flushes, or is slow. Everybody gets a clear error or an answer that holds. When the disk recovers, so does the
// platform: by itself or, if the kernel has given the file system up, after a repair and a start.

const rounds = numberOf('PROOF_ROUNDS', 30);
const seed = numberOf('PROOF_SEED', Math.floor(Math.random() * 2 ** 31));
/** How many facts of a round are examined: those that take a resume or a create. */
const lookedIntoMax = 4;

const kinds: Record<string, Partial<Faults>> = {
  'one of ten writes is refused': { refusedWrites: 10 },
  'every write is refused': { refusedWrites: 100 },
  'half of the flushes are refused': { refusedFlushes: 50 },
  'every flush is refused': { refusedFlushes: 100 },
  'every write and flush takes 100 ms': { delayMs: 100 },
};

type Round = { kind: string; failures: string[]; gaveUp: boolean };

const folder = mkdtempSync(join(tmpdir(), 'atoll-failing-'));
afterAll(() => rmSync(folder, { recursive: true }));

test(`a disk that fails in ${rounds} rounds takes nothing that was answered (PROOF_SEED=${seed})`, async () => {
  const startedAt = new Date();
  const random = randomOf(seed);
  const disks = await LossyDisks.make(folder);
  const { disk, fail } = await disks.failing();
  await using cleanup = new AsyncDisposableStack();
  cleanup.use(disk);
  const platform = cleanup.use(await startPlatform({ ATOLL_DATA_DIR: join(disk.point, 'data'), ATOLL_POOL_SIZE: '1' }));
  const told: Round[] = [];
  let [moment, looked] = [0, 0];
  const ledger = new Ledger(() => moment++);
  const names = Object.keys(kinds);
  const runRound = async (round: number) => {
    const kind = names[round % names.length] ?? '';
    const work = workOnce(lookerOf(platform), ledger, round);
    await Bun.sleep(random() * 2_500);
    fail(kinds[kind] ?? {});
    await Bun.sleep(500 + random() * 3_000);
    fail({});
    const failures = await work;
    const gaveUp = disk.isReadOnly();
    console.log(`round ${round}: ${kind}: ${failures.length} failures${gaveUp ? ', repaired' : ''}`);
    told.push({ kind, failures, gaveUp });
    if (gaveUp) {
      await platform.kill9();
      await endProcesses(platform);
      await disk.repair();
      await platform.restart();
    }
    await recovers(platform);
    looked += await lookFor(platform, ledger, moment, lookedIntoMax, random).catch((error: unknown) => {
      throw new Error(`round ${round}, ${kind}: ${String(error)}\n${platform.log().slice(-6_000)}`);
    });
  };
  for (let round = 0; round < rounds; round++)
    await runRound(round).catch((error: unknown) => {
      // A failure while the disk is released would hide this error.
      console.error(error);
      throw error;
    });
  for (const { kind, failures } of told) expectClear(kind, failures);
  expect(told.filter(({ kind }) => kinds[kind]?.delayMs).flatMap(({ failures }) => failures)).toEqual([]);
  writeSection('Failing disk', report(startedAt, told, ledger, looked));
});

/** As in a reboot: once the file system is gone, only what is on the disk can be saved of a sandbox. */
async function endProcesses({ ready }: TestPlatform): Promise<void> {
  await waitFor('the end of every process', () => {
    const { processes, cgroups } = holdingsOf(ready.dataDir);
    // Under version 1 of cgroups, processes that a pause in progress has frozen do not end.
    for (const group of cgroups.filter(name => name.startsWith('/freezer/')))
      writeFileSync(`/sys/fs/cgroup${group}/freezer.state`, 'THAWED');
    const pids = processes.map(line => Number(line.split(' ')[0]));
    for (const pid of pids) killIfThere(pid);
    return pids.length === 0;
  });
}

function report(startedAt: Date, told: Round[], ledger: Ledger, looked: number): string {
  const rows = Object.keys(kinds).map(kind => {
    const of = told.filter(round => round.kind === kind);
    const failed = of.reduce((sum, { failures }) => sum + failures.length, 0);
    return `| ${kind} | ${of.length} | ${failed} | ${of.filter(({ gaveUp }) => gaveUp).length} |`;
  });
  return `
The data directory is on a disk that fails for up to four seconds at a time. Meanwhile clients pause, resume, kill,
snapshot, build, write to volumes, make and revoke keys, keep secrets and back up, all at once. Each client gives up at
its first error, which must say what is wrong. Afterwards a sandbox must start again by itself; if the kernel has given
the file system up, after \`e2fsck\` and a start. Each time, the proof looks for everything that clients had been told,
and for ${lookedIntoMax} of the facts from inside, by a resume or a create.

| | |
|---|---|
${circumstances(startedAt, seed)}
| Answers that were looked for | ${looked} times, of ${ledger.facts.length} that clients got |
| Answers that did not hold · errors without a reason | 0 · 0 |

| The disk | Rounds | Clients that heard an error | File system given up by the kernel |
|---|---|---|---|
${rows.join('\n')}
`;
}
