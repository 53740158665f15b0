import { expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { randomOf } from '../api/random.ts';
import { runToEnd } from '../support/process.ts';
import { isTest, sourceFiles } from '../tidy/source-files.ts';
import { passes } from './mutation/checks.ts';
import { build, copyOfCheckout } from './mutation/copy.ts';
import { type Mutant, mutantsOf } from './mutation/mutants.ts';
import { reachOf, type Reaching } from './mutation/reach.ts';
import { keepVerdict, type Verdict, verdictsSoFar } from './mutation/verdicts.ts';
import { circumstances, writeSection } from './support/report.ts';
import { numberOf } from './support/settings.ts';

// `npm run prove -- mutation`: small faults are put into copies of this checkout, one at a time, and the test files that
// run the place are asked whether they see it. What they do not see is listed: a test that is missing, or a line that
// changes nothing.

const seed = numberOf('PROOF_SEED', Math.floor(Math.random() * 2 ** 31));
const wanted = numberOf('PROOF_MUTANTS', 300);
/** No further fault is begun after that many minutes. */
const minutesMax = numberOf('PROOF_MINUTES', 24 * 60);
/** Faults that are tried at the same time, each in a copy of its own. */
const copiesMax = availableParallelism();
/** For one fault, test files are asked that take so long together when nothing is wrong: then it counts as not seen. */
const askedSecondsMax = 240;
const compilerTimeoutMs = 5 * 60_000;
/** Least share of faults that the tests must see. */
const goal = 0.85;

test(`tests see faults in ${wanted} places (PROOF_SEED=${seed})`, async () => {
  const startedAt = new Date();
  await using stack = new AsyncDisposableStack();
  const roots: string[] = [];
  while (roots.length < copiesMax) roots.push(stack.use(await copyOfCheckout()).root);
  const reaching = await reachOf(roots);
  const verdicts = verdictsSoFar();
  const all = allMutants();
  const mutants = inTurn(all);
  const isOver = () => verdicts.length >= wanted || Date.now() - startedAt.getTime() > minutesMax * 60_000;
  await Promise.all(
    roots.map(async root => {
      while (!isOver()) {
        const { value: mutant } = mutants.next();
        if (!mutant) return;
        const verdict = await judge(root, mutant, reaching(mutant.path, mutant.offset));
        if (!verdict) continue;
        verdicts.push(verdict);
        keepVerdict(verdict);
        console.log(`${verdicts.length}: ${lineOf(verdict)}`);
      }
    }),
  );
  writeSection('Faults in the code', report(verdicts, all, startedAt));
  expect(verdicts.length).toBeGreaterThan(0);
  expect(shareOf(verdicts, all)).toBeGreaterThanOrEqual(goal);
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
function putInto(root: string, { path, text }: Mutant): Disposable {
  const file = join(root, path);
  const sound = readFileSync(file);
  writeFileSync(file, text);
  return { [Symbol.dispose]: () => writeFileSync(file, sound) };
}

/** Puts a fault into a copy and asks the tests. Undefined: the compiler refuses it. */
async function judge(root: string, mutant: Mutant, checks: Reaching[]): Promise<Verdict | undefined> {
  const { text: _text, offset: _offset, ...fault } = mutant;
  let [asked, seconds] = [0, 0];
  using stack = new DisposableStack();
  stack.use(putInto(root, mutant));
  if (!(await compiles(root, mutant.path))) return undefined;
  const tree = treeOf(root);
  for (const check of checks) {
    if ((seconds += check.seconds) > askedSecondsMax) break;
    asked++;
    if (await tree.passes(check)) continue;
    // A failure that comes from the fault, and not from a busy machine, comes twice and goes with it.
    if (check.isOfBuilt && (await tree.passes(check))) continue;
    stack.dispose();
    if (!check.isOfBuilt || (await treeOf(root).passes(check))) return { ...fault, asked, seenBy: check.file };
    console.log(`does not count, as ${check.file} fails without a fault too: ${mutant.path}:${mutant.line}`);
    return undefined;
  }
  return { ...fault, asked, seenBy: null };
}

/** A copy as it is now, built when the first test file needs that. */
function treeOf(root: string): { passes(check: Reaching): Promise<boolean> } {
  let built: Promise<boolean> | undefined;
  return {
    async passes(check) {
      if (check.isOfBuilt) await (built ??= build(root));
      return passes(root, check, check.seconds);
    },
  };
}

/**
 * A fault that the compiler refuses is none that could be made: it does not count. What it knows of all other files is
 * kept from fault to fault.
 */
async function compiles(root: string, path: string): Promise<boolean> {
  const project = path.startsWith('src/dashboard/') ? 'src/dashboard' : '.';
  const known = `dist/mutation-${project.replaceAll(/\W/g, '-')}.tsbuildinfo`;
  const argv = ['node_modules/.bin/tsc', '-p', project, '--incremental', '--tsBuildInfoFile', known];
  return (await runToEnd(argv, { cwd: root, timeoutMs: compilerTimeoutMs })).exitCode === 0;
}

const lineOf = ({ kind, path, line, change, seenBy, asked }: Verdict): string =>
  `${seenBy ?? 'NOT SEEN'} (${asked} asked): ${kind} ${path}:${line} ${change}`;

const isSeen = ({ seenBy }: Verdict): boolean => seenBy !== null;
const kindOf = ({ kind }: { kind: string }): string => kind;

/**
 * The share of all faults that could be made that the tests see, as far as the tried ones tell: each kind counts by how
 * many there are of it.
 */
function shareOf(verdicts: Verdict[], all: Mutant[]): number {
  const kinds = [...Map.groupBy(verdicts, kindOf)].map(([kind, tried]) => ({
    places: all.filter(mutant => mutant.kind === kind).length,
    seen: tried.filter(isSeen).length / tried.length,
  }));
  const places = kinds.reduce((sum, kind) => sum + kind.places, 0);
  return kinds.reduce((sum, kind) => sum + kind.seen * kind.places, 0) / places;
}

function report(verdicts: Verdict[], all: Mutant[], startedAt: Date): string {
  const unseen = verdicts.filter(verdict => !isSeen(verdict));
  const kinds = [...Map.groupBy(verdicts, kindOf)].map(([kind, tried]) => {
    const places = all.filter(mutant => mutant.kind === kind).length;
    return `| ${kind} | ${places} | ${tried.length} | ${tried.filter(isSeen).length} |`;
  });
  const suiteOf = (file: string) => (file.startsWith('src/') ? 'unit tests' : file.split('/').slice(0, 2).join('/'));
  const suites = Map.groupBy(verdicts, ({ seenBy }) => (seenBy ? suiteOf(seenBy) : 'nobody'));
  const rows = [...suites].sort(([, a], [, b]) => b.length - a.length).map(([who, of]) => `| ${who} | ${of.length} |`);
  return `
One at a time, a condition is made always true or false, an operator is replaced, a limit tripled, two steps are exchanged, a call or an undo is left
out, at places of \`src\` that chance chooses, in a copy of the checkout; what the compiler refuses does not count. Asked are the test files that run
the place when nothing is wrong, as many as take ${askedSecondsMax / 60} minutes together. A fault is seen where one of them fails, or does not end in its time.
\`test/proof/mutation/verdicts.jsonl\` has each fault of all runs, which are added up here.

| | |
|---|---|
${circumstances(startedAt, seed)}
| Faults seen | ${verdicts.length - unseen.length} of ${verdicts.length} |
| The same, each kind by how many faults of it could be made | ${(shareOf(verdicts, all) * 100).toFixed(0)} % |

| Kind | Could be made | Tried | Seen |
|---|---|---|---|
${kinds.join('\n')}

| Seen by | Faults |
|---|---|
${rows.join('\n')}

Not seen:

${unseen.map(({ kind, path, line, change }) => `- ${kind}, \`${path}:${line}\`: \`${change.replaceAll('`', "'")}\``).join('\n') || 'None.'}
`;
}
