import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomOf } from '../api/random.ts';
import { startPlatform } from '../support/platform.ts';
import { work } from './power/clients.ts';
import { type Fact, Ledger, lookerOf } from './power/ledger.ts';
import { type Cut, LossyDisks } from './power/lossy-disk.ts';
import { circumstances, writeSection } from './support/report.ts';
import { numberOf } from './support/settings.ts';

// The data directory is on a disk on which a loss of power takes what was not flushed, in any order and by halves. The
// platform works on it once, from its first start on, while everything that reaches the disk is logged. Then the power
// fails at many moments of that log: a platform starts on what such a disk has, and everything that clients had been
// told by then must hold.

const cuts = numberOf('PROOF_CUTS', 500);
const rounds = numberOf('PROOF_ROUNDS', 3);
const seed = numberOf('PROOF_SEED', Math.floor(Math.random() * 2 ** 31));
/** How many facts of a cut are examined: those that take a resume or a create. */
const lookedIntoMax = 3;
/** Lines of a platform's log that are shown if something is wrong. */
const complaintsMax = 10;

const folder = mkdtempSync(join(tmpdir(), 'atoll-power-'));
afterAll(() => rmSync(folder, { recursive: true }));

test(`${cuts} losses of power take nothing that was answered (PROOF_SEED=${seed})`, async () => {
  const startedAt = new Date();
  const random = randomOf(seed);
  const disks = await LossyDisks.make(folder);
  const ledger = new Ledger(() => disks.loggedBytes());
  const served = await recordWork(disks, ledger);
  const problems: string[] = [];
  let [looked, factsLooked] = [0, 0];
  for (const cut of await momentsOf(disks, ledger, random)) {
    const cutSeed = Math.floor(random() * 2 ** 31);
    const facts = ledger.inForce(cut.end);
    const found = await lookAfter(disks, cut, cutSeed, facts, random).catch(error => [`no start: ${error}`]);
    looked++;
    factsLooked += facts.length;
    const about = `cut ${looked} of ${cuts}, at ${cut.end}${cut.end < served ? ' (first start)' : ''}`;
    console.log(`${about}: ${found.length === 0 ? 'all there' : found.join('; ')}`);
    problems.push(...found.map(problem => `${about}, seed ${cutSeed}: ${problem}`));
  }
  expect(problems).toEqual([]);
  writeSection('Loss of power', report(startedAt, ledger, factsLooked));
});

function report(startedAt: Date, ledger: Ledger, looked: number): string {
  return `
The data directory is on a disk that loses what was not flushed when the power goes: of the writes since the last flush
it keeps some, in any order and by halves. From the platform's very first start on, clients pause with and without
memory, resume, kill, snapshot, build, write to volumes by the API and from sandboxes, make and revoke keys, keep secrets
and back up, all at once.

The power goes at ${cuts} moments, half of them right after an answer, the others anywhere. Then a platform starts on what the
disk has, and the proof looks for what clients had been told by then: in lists each time, and for ${lookedIntoMax} of the facts from
inside, by a resume or a create.

| | |
|---|---|
${circumstances(startedAt, seed)}
| Losses of power | ${cuts} |
| Answers that were looked for | ${looked}, of ${ledger.facts.length} that clients got |
| Starts that failed · answers that did not hold | 0 · 0 |
`;
}

/** Answers how much was logged when the platform first served. */
async function recordWork(disks: LossyDisks, ledger: Ledger): Promise<number> {
  await using disk = await disks.record();
  await using platform = await startOn(disk.point);
  const served = disks.loggedBytes();
  await work(lookerOf(platform), ledger, rounds).catch(error => {
    throw new Error(`the work failed: ${error}\n${platform.log()}`);
  });
  return served;
}

/** Half of the moments are random, and half come right after an answer, in order. */
async function momentsOf(disks: LossyDisks, ledger: Ledger, random: () => number): Promise<Cut[]> {
  const records = await disks.records();
  const until = Math.max(...ledger.facts.map(({ since }) => since));
  const ends = records.map(({ end }) => end).filter(end => end <= until);
  const chosen = Array.from({ length: cuts }, (_, index) => {
    const fact = ledger.facts[Math.floor(random() * ledger.facts.length)];
    const anywhere = ends[Math.floor(random() * ends.length)] ?? 0;
    return index % 2 === 0 || !fact ? anywhere : (ends.find(end => end >= fact.since) ?? anywhere);
  }).toSorted((a, b) => a - b);
  const flushes = records.filter(({ bytes }) => bytes === 0).map(({ end }) => end);
  return chosen.map(end => ({ end, flushed: flushes.findLast(flush => flush <= end) ?? 0 }));
}

/** The facts that do not hold after a loss of power. */
async function lookAfter(
  disks: LossyDisks,
  cut: Cut,
  cutSeed: number,
  facts: Fact[],
  random: () => number,
): Promise<string[]> {
  await using disk = await disks.after(cut, cutSeed);
  await using platform = await startOn(disk.point);
  const looker = lookerOf(platform);
  const problems: string[] = [];
  const check = (fact: Fact, look: Fact['look']) =>
    look(looker).catch(error => void problems.push(`${fact.what}: ${String(error).split('\n', 8).join(' ')}`));
  await Promise.all(facts.map(fact => check(fact, fact.look)));
  const deep = facts.filter(fact => fact.lookInside);
  for (let index = 0; index < lookedIntoMax && deep.length > 0; index++) {
    const [fact] = deep.splice(Math.floor(random() * deep.length), 1);
    if (fact?.lookInside) await check(fact, fact.lookInside);
  }
  return problems.length > 0 ? [...problems, ...complaintsIn(platform.log())] : problems;
}

/** A platform's last messages about anything that is wrong. */
const complaintsIn = (log: string): string[] =>
  log
    .split('\n')
    .filter(line => /"level":"(?:warn|error)"/.test(line))
    .slice(-complaintsMax);

const startOn = (point: string) => startPlatform({ ATOLL_DATA_DIR: join(point, 'data'), ATOLL_POOL_SIZE: '0' });
