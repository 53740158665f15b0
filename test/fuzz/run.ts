// `npm run fuzz [-- TARGET …] [--seconds N | --runs N] [--seed S]`: searches for inputs that break a parser.
//
// Each target gets its runs, or its share of the seconds. A failing input is shortened, kept under test/fuzz/crashes,
// and is one of the tests from then on. The same seed makes the same inputs.
import { keep } from './engine/kept.ts';
import { runCampaign, type Report } from './engine/campaign.ts';
import type { Target } from './engine/target.ts';
import { targets } from './targets.ts';

const secondsDefault = 300;

type Options = { names: string[]; seconds: number; runs: number | undefined; seed: string };

function readOptions(args: readonly string[]): Options {
  const options: Options = { names: [], seconds: secondsDefault, runs: undefined, seed: String(Date.now()) };
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? '';
    if (!word.startsWith('--')) options.names.push(word);
    else if (word === '--seed') options.seed = args[++at] ?? '';
    else if (word === '--runs') options.runs = wholeNumber(word, args[++at]);
    else if (word === '--seconds') options.seconds = wholeNumber(word, args[++at]);
    else refuse(`there is no option ${word}`);
  }
  return options;
}

function wholeNumber(name: string, text = ''): number {
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : refuse(`${name} needs a whole number from 1`);
}

function refuse(why: string): never {
  process.stderr.write(
    `${why}\nusage: npm run fuzz [-- TARGET …] [--seconds N | --runs N] [--seed S]\ntargets: ${targets.map(({ name }) => name).join(' ')}\n`,
  );
  process.exit(2);
}

const options = readOptions(process.argv.slice(2));
const unknown = options.names.find(name => !targets.some(target => target.name === name));
if (unknown !== undefined) refuse(`no target is named ${unknown}`);
const chosen = options.names.length === 0 ? targets : targets.filter(({ name }) => options.names.includes(name));

let failures = 0;
process.stdout.write(`${chosen.length} targets, seed ${options.seed}\n`);
for (const target of chosen) {
  const startedAt = Date.now();
  const until =
    options.runs === undefined ? startedAt + (options.seconds * 1000) / chosen.length : Number.POSITIVE_INFINITY;
  const report = await runCampaign(target, {
    seed: options.seed,
    runsMax: options.runs ?? Number.MAX_SAFE_INTEGER,
    until,
  });
  process.stdout.write(`${lineOf(target, report, Date.now() - startedAt)}\n`);
  if (report.failure) failures++;
}
process.exit(failures > 0 ? 1 : 0);

function lineOf({ name }: Target, { runs, pumps, outcomes, failure }: Report, tookMs: number): string {
  const line = `${failure ? '✗' : '✓'} ${name}: ${runs} runs, ${pumps} long inputs, ${outcomes.size} outcomes, ${(tookMs / 1000).toFixed(1)} s`;
  if (!failure) return line;
  const file = keep(name, failure);
  const shown =
    'input' in failure
      ? JSON.stringify(failure.input.toString('latin1').slice(0, 200))
      : JSON.stringify(failure.pump).slice(0, 300);
  return `${line}\n  ${failure.reason.split('\n').slice(0, 6).join('\n  ')}\n  input: ${shown}\n  kept: ${file}`;
}
