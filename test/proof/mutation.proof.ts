import { expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bunPath } from '../../scripts/setup/npm-packages.mjs';
import { randomOf } from '../api/random.ts';
import { runToEnd } from '../support/process.ts';
import { isTest, sourceFiles } from '../tidy/source-files.ts';
import { nearestTests, suitesFor } from './mutation/checks.ts';
import { copyOfCheckout } from './mutation/copy.ts';
import { type Mutant, mutantsOf } from './mutation/mutants.ts';
import { circumstances, writeSection } from './support/report.ts';
import { numberOf } from './support/settings.ts';

// `npm run prove -- mutation`: small faults are put into a copy of this checkout, one at a time, and the tests are asked
// whether they see them. What they do not see is listed: a test that is missing, or a line that changes nothing.

const seed = numberOf('PROOF_SEED', Math.floor(Math.random() * 2 ** 31));
const wanted = numberOf('PROOF_MUTANTS', 300);
/** No further fault is begun after that many minutes. */
const minutesMax = numberOf('PROOF_MINUTES', 24 * 60);
const nearestTimeoutMs = 5 * 60_000;
const suiteTimeoutMs = 30 * 60_000;
/** Least share of faults that the tests must see. */
const goal = 0.85;

type Verdict = { mutant: Mutant; seenBy: string | null };

test(`tests see faults in ${wanted} places (PROOF_SEED=${seed})`, async () => {
  const startedAt = new Date();
  await using copy = await copyOfCheckout();
  const nearest = nearestTests();
  const verdicts: Verdict[] = [];
  for (const mutant of inTurn(allMutants())) {
    if (verdicts.length === wanted || Date.now() - startedAt.getTime() > minutesMax * 60_000) break;
    using fault = putInto(copy.root, mutant);
    if (await fails(copy.root, compilerFor(mutant.path))) continue;
    const seenBy = await whoSees(fault, mutant.path, nearest(mutant.path));
    verdicts.push({ mutant, seenBy });
    console.log(
      `${verdicts.length}: ${seenBy ?? 'NOT SEEN'}: ${mutant.kind} ${mutant.path}:${mutant.line} ${mutant.change}`,
    );
  }
  writeSection('Faults in the code', report(verdicts, startedAt));
  const seen = verdicts.filter(({ seenBy }) => seenBy !== null).length;
  expect(verdicts.length).toBeGreaterThan(0);
  expect(seen / verdicts.length).toBeGreaterThanOrEqual(goal);
});

const allMutants = (): Mutant[] =>
  sourceFiles(['src'])
    .filter(({ path }) => !isTest(path))
    .flatMap(mutantsOf);

/** As many of each kind, the kinds in turn: there are forty times as many conditions as undos. */
function* inTurn(mutants: Mutant[]): Generator<Mutant> {
  const random = randomOf(seed);
  const kinds = [...Map.groupBy(mutants, ({ kind }) => kind).values()];
  while (kinds.some(left => left.length > 0))
    for (const left of kinds) yield* left.splice(Math.floor(random() * left.length), 1);
}

/** Puts a fault into a copy of the checkout, until it is disposed of. */
function putInto(root: string, { path, text }: Mutant): Disposable & { root: string } {
  const file = join(root, path);
  const sound = readFileSync(file);
  writeFileSync(file, text);
  return { root, [Symbol.dispose]: () => writeFileSync(file, sound) };
}

/**
 * A fault that the compiler refuses is none that could be made: it does not count. What it knows of all other files is
 * kept from fault to fault.
 */
function compilerFor(path: string): string[] {
  const project = path.startsWith('src/dashboard/') ? 'src/dashboard' : '.';
  const known = `dist/mutation-${project.replaceAll(/\W/g, '-')}.tsbuildinfo`;
  return ['node_modules/.bin/tsc', '-p', project, '--incremental', '--tsBuildInfoFile', known];
}

/** Who sees a fault: the test files nearest to it, or a whole suite; null: nobody. */
async function whoSees({ root }: { root: string }, path: string, tests: string[]): Promise<string | null> {
  const files = tests.map(file => `./${file}`);
  if (files.length > 0 && (await fails(root, [bunPath(root), 'test', '--bail', '--timeout=60000', ...files])))
    return 'tests of what imports it';
  for (const suite of suitesFor(path))
    if (await fails(root, ['npm', 'test', '--', suite], suiteTimeoutMs)) return `suite ${suite}`;
  return null;
}

async function fails(root: string, argv: string[], timeoutMs = nearestTimeoutMs): Promise<boolean> {
  const { exitCode } = await runToEnd(argv, { cwd: root, timeoutMs, env: { ...process.env, CI: 'true' } });
  return exitCode !== 0;
}

function report(verdicts: Verdict[], startedAt: Date): string {
  const unseen = verdicts.filter(({ seenBy }) => seenBy === null);
  const counts = new Map<string, number>();
  for (const { seenBy } of verdicts) counts.set(seenBy ?? 'nobody', (counts.get(seenBy ?? 'nobody') ?? 0) + 1);
  const rows = [...counts].sort(([, a], [, b]) => b - a).map(([who, count]) => `| ${who} | ${count} |`);
  return `
One at a time, a condition is made always true or false, an operator is replaced, a limit tripled, two steps are exchanged, a call or an undo is left
out, at places of \`src\` that chance chooses, in a copy of the checkout; what the compiler refuses does not count. A fault is seen where a test
fails, or does not end in its time.

| | |
|---|---|
${circumstances(startedAt, seed)}
| Faults seen | ${verdicts.length - unseen.length} of ${verdicts.length} |

| Seen by | Faults |
|---|---|
${rows.join('\n')}

Not seen:

${unseen.map(({ mutant }) => `- ${mutant.kind}, \`${mutant.path}:${mutant.line}\`: \`${mutant.change.replaceAll('`', "'")}\``).join('\n') || 'None.'}
`;
}
