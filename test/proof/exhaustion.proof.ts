import { expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tryCommand } from '../../src/base/process/command.ts';
import { randomOf } from '../api/random.ts';
import { startPlatform } from '../support/platform.ts';
import { lacks } from './exhaustion/lacks.ts';
import { workOnce } from './power/clients.ts';
import { Ledger, lookerOf } from './power/ledger.ts';
import { expectClear, lookFor, recovers } from './support/after-trouble.ts';
import { circumstances, writeSection } from './support/report.ts';
import { numberOf } from './support/settings.ts';

// `npm run prove -- exhaustion`: while clients work, one thing after another is used up for some seconds: descriptors,
// processes and memory of the platform's processes, memory of the host, its loop devices and tracked connections, room
// on the disk. Everybody gets a clear error or an answer that holds, and the platform recovers by itself.

const rounds = numberOf('PROOF_ROUNDS', 2 * lacks.length);
const seed = numberOf('PROOF_SEED', Math.floor(Math.random() * 2 ** 31));
/** Limits the lacks to those whose names match this expression. */
const only = new RegExp(process.env['PROOF_ONLY'] ?? '');
/** How many facts of a round are examined: those that take a resume or a create. */
const lookedIntoMax = 4;
const diskBytes = 48 * 2 ** 30;

type Round = { lack: string; failures: string[] };

/** A separate disk, whose room nobody else has or takes. */
async function ownDisk(cleanup: AsyncDisposableStack): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-exhaustion-'));
  cleanup.defer(() => rmSync(folder, { recursive: true }));
  const [image, point] = [join(folder, 'image'), join(folder, 'disk')];
  writeFileSync(image, '');
  truncateSync(image, diskBytes);
  mkdirSync(point);
  await tryCommand(['mkfs.ext4', '-q', '-F', image]);
  await tryCommand(['mount', '-o', 'loop', image, point]);
  cleanup.defer(async () => void (await tryCommand(['umount', point])));
  return point;
}

test(`what is used up in ${rounds} rounds takes nothing that was answered (PROOF_SEED=${seed})`, async () => {
  const startedAt = new Date();
  const random = randomOf(seed);
  await using cleanup = new AsyncDisposableStack();
  const disk = await ownDisk(cleanup);
  const platform = cleanup.use(await startPlatform({ ATOLL_DATA_DIR: join(disk, 'data'), ATOLL_POOL_SIZE: '1' }));
  const told: Round[] = [];
  let [moment, looked] = [0, 0];
  const ledger = new Ledger(() => moment++);
  const chosen = lacks.filter(({ name }) => only.test(name));
  for (let round = 0; round < rounds; round++) {
    const lack = chosen[round % chosen.length]!;
    const work = workOnce(lookerOf(platform), ledger, round);
    await Bun.sleep(random() * 2_500);
    const giveBack = await lack.begin(platform);
    await Bun.sleep(500 + random() * 3_000);
    await giveBack();
    const failures = await work;
    console.log(
      `round ${round}: ${lack.name}: ${failures.length} failures\n${failures.map(text => `  ${text.slice(0, 300)}`).join('\n')}`,
    );
    told.push({ lack: lack.name, failures });
    await recovers(platform);
    looked += await lookFor(platform, ledger, moment, lookedIntoMax, random).catch((error: unknown) => {
      throw new Error(`round ${round}, ${lack.name}: ${String(error)}\n${platform.log().slice(-6_000)}`);
    });
  }
  for (const { lack, failures } of told) {
    expectClear(lack, failures);
    // The error must name a lack of the machine, not a fault of the platform or of the caller.
    expect({ lack, failures: failures.filter(failure => /\b(500|400)\b/.test(failure)) }).toEqual({
      lack,
      failures: [],
    });
  }
  writeSection('Everything used up', report(startedAt, told, ledger, looked));
});

function report(startedAt: Date, told: Round[], ledger: Ledger, looked: number): string {
  const rows = lacks.map(({ name }) => {
    const of = told.filter(({ lack }) => lack === name);
    return `| ${name} | ${of.length} | ${of.reduce((sum, { failures }) => sum + failures.length, 0)} |`;
  });
  return `
For up to four seconds at a time, one thing is used up. Meanwhile clients pause, resume, kill, snapshot,
build, write to volumes, make and revoke keys, keep secrets and back up, all at once. Each client gives up at its first
error, which must say what is wrong. Afterwards a sandbox must start again by itself. Each time, the proof looks for
everything that clients had been told, and for ${lookedIntoMax} of the facts from inside, by a resume or a create.

| | |
|---|---|
${circumstances(startedAt, seed)}
| Answers that were looked for | ${looked} times, of ${ledger.facts.length} that clients got |
| Answers that did not hold · errors without a reason | 0 · 0 |

| What is used up | Rounds | Clients that heard an error |
|---|---|---|
${rows.join('\n')}
`;
}
