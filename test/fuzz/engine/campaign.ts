import { messageOf } from '../../../src/base/error.ts';
import { randomPump, superlinear } from './linear.ts';
import { minimise } from './minimise.ts';
import { mutate, type Pool } from './mutate.ts';
import { createRandom, hashOf } from './random.ts';
import type { Outcome, Pump, Target } from './target.ts';

const bytesMaxDefault = 4096;
/** How many inputs with new outcomes are kept for breeding. */
const bredFromMax = 400;
/** Ordinary runs for each shape whose cost is measured. */
const runsPerPump = 400;
/** Default limit of one run's cost, ms of processor time: inputs have a few KiB. */
const runCostMsDefault = 2_000;

type Failure = { reason: string } & ({ input: Buffer } | { pump: Pump });
export type Report = { runs: number; pumps: number; outcomes: Map<Outcome, number>; failure: Failure | undefined };

type Budget = { seed: string; runsMax: number; until?: number };

/** Runs a target until its budget is used up or something fails; a failing input is made as short as possible. */
export async function runCampaign(
  target: Target,
  { seed, runsMax, until = Number.POSITIVE_INFINITY }: Budget,
): Promise<Report> {
  const pool = poolOf(target);
  const bred = [...pool.inputs];
  const report: Report = { runs: 0, pumps: 0, outcomes: new Map(), failure: undefined };
  for (const pump of target.pumps ?? []) if (!report.failure) await tryPump(target, pump, report);
  for (; report.runs < runsMax && Date.now() < until && !report.failure; report.runs++) {
    const random = createRandom(`${seed}/${target.name}/${report.runs}`);
    if (report.runs % runsPerPump === runsPerPump - 1) await tryPump(target, randomPump(random, pool), report);
    const input = nextInput(target, report.runs, random, { inputs: bred, words: pool.words });
    const result = await runOnce(target, input);
    if ('failed' in result) {
      report.failure = {
        reason: result.failed,
        input: await minimise(input, async shorter => 'failed' in (await runOnce(target, shorter))),
      };
      break;
    }
    const seen = report.outcomes.get(result.outcome) ?? 0;
    report.outcomes.set(result.outcome, seen + 1);
    if (seen < 3 && bred.length < bredFromMax) bred.push(input);
  }
  return report;
}

/** First the corpus itself, then inputs derived from it. */
function nextInput(target: Target, run: number, random: ReturnType<typeof createRandom>, pool: Pool): Buffer {
  const bytesMax = target.bytesMax ?? bytesMaxDefault;
  const whole = target.corpus[run];
  if (whole !== undefined) return Buffer.from(whole);
  const fresh = target.generate && random.once(3) ? Buffer.from(target.generate(random)) : random.pick(pool.inputs);
  return random.once(12) ? fresh.subarray(0, bytesMax) : mutate(fresh, random, pool, bytesMax);
}

async function tryPump(target: Target, pump: Pump, report: Report): Promise<void> {
  report.pumps++;
  const reason = await superlinear(target, pump);
  if (reason !== undefined) report.failure = { reason, pump };
}

/** One input: its outcome, or why it failed. */
export async function runOnce(target: Target, input: Buffer): Promise<{ outcome: Outcome } | { failed: string }> {
  const costMsMax = target.runCostMsMax ?? runCostMsDefault;
  const startedAt = performance.now();
  try {
    const answer = target.check(Buffer.from(input), createRandom(hashOf(input)));
    const outcome = answer instanceof Promise ? await answer : answer;
    // On a busy machine anything may take long: a slow run is measured again by processor time.
    const costMs = performance.now() - startedAt > costMsMax ? await costOf(target, input) : 0;
    return costMs > costMsMax ? { failed: `took ${Math.round(costMs)} ms of processor time` } : { outcome };
  } catch (error) {
    return { failed: error instanceof Error ? (error.stack ?? messageOf(error)) : messageOf(error) };
  }
}

/** Processor time of this process for one more run, ms. */
async function costOf(target: Target, input: Buffer): Promise<number> {
  const before = process.cpuUsage();
  await target.check(Buffer.from(input), createRandom(hashOf(input)));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function poolOf({ corpus, dictionary = [] }: Target): Pool {
  const inputs = corpus.map(input => Buffer.from(input));
  const words = [
    ...dictionary,
    '\r\n',
    '\n',
    '\0',
    ' ',
    '\t',
    '"',
    '\\',
    '%',
    '/',
    '..',
    ',',
    ';',
    ':',
    '=',
    '\xff',
    '${',
    '__proto__',
  ].map(word => (typeof word === 'string' ? Buffer.from(word, 'latin1') : Buffer.from(word)));
  return { inputs, words };
}
