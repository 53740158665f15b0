import { expect, test } from 'bun:test';
import { availableParallelism } from 'node:os';
import { randomOf } from '../api/random.ts';
import { isTest, sourceFiles } from '../tidy/source-files.ts';
import { passes } from './mutation/checks.ts';
import { build, compiles, copyOfCheckout, putInto } from './mutation/copy.ts';
import { type Mutant, mutantsOf } from './mutation/mutants.ts';
import { reachOf, type Reaching } from './mutation/reach.ts';
import { faultOf, keepVerdict, type Verdict, verdictsSoFar } from './mutation/verdicts.ts';
import { circumstances, writeSection } from './support/report.ts';
import { numberOf } from './support/settings.ts';

// `npm run prove -- mutation`: small faults are put into copies of this checkout, one at a time, and the test files
// that run the place must see them. Unseen faults are listed: a missing test, or a line that changes nothing.

const seed = numberOf('PROOF_SEED', Math.floor(Math.random() * 2 ** 31));
const wanted = numberOf('PROOF_MUTANTS', 300);
/** After this many minutes, no further fault is begun. */
const minutesMax = numberOf('PROOF_MINUTES', 24 * 60);
/** Faults tried at the same time, each in its own copy: tests spend half of their time waiting. */
const copiesMax = 2 * availableParallelism();
/**
 * For one fault, test files run that together take this long when nothing is wrong: beyond that, it counts as unseen.
 */
const askedSecondsMax = 240;
/** Least share of faults that the tests must see. */
const goal = 0.85;

test(`tests see faults in ${wanted} places (PROOF_SEED=${seed})`, async () => {
  const startedAt = new Date();
  const verdicts = verdictsSoFar();
  const all = allMutants();
  const isOver = () => verdicts.length >= wanted || Date.now() - startedAt.getTime() > minutesMax * 60_000;
  // Known verdicts can be added up again.
  if (!isOver()) await tryMore(verdicts, all, isOver);
  writeSection('Faults in the code', report(verdicts, all, startedAt));
  expect(verdicts.length).toBeGreaterThan(0);
  expect(shareOf(verdicts, all, isSeen)).toBeGreaterThanOrEqual(goal);
});

/** Tries untried faults until the time is over, and adds their outcomes to the verdicts. */
async function tryMore(verdicts: Verdict[], all: Mutant[], isOver: () => boolean): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const roots: string[] = [];
  while (roots.length < copiesMax) roots.push(stack.use(await copyOfCheckout()).root);
  const reaching = await reachOf(roots);
  const known = new Set(verdicts.map(verdict => faultOf(verdict, all)));
  const mutants = inAnyOrder(all.filter(mutant => !known.has(mutant)));
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
}

const allMutants = (): Mutant[] =>
  sourceFiles(['src'])
    .filter(({ path }) => !isTest(path))
    .flatMap(mutantsOf);

function* inAnyOrder(mutants: Mutant[]): Generator<Mutant> {
  const random = randomOf(seed);
  for (const left = [...mutants]; left.length > 0;) yield* left.splice(Math.floor(random() * left.length), 1);
}

/** Puts a fault into a copy and runs the tests. Undefined: the compiler refuses it. */
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
    // A failure caused by the fault, and not by a busy machine, occurs twice and disappears with it.
    if (check.isOfBuilt && (await tree.passes(check))) continue;
    stack.dispose();
    if (!check.isOfBuilt || (await treeOf(root).passes(check))) return { ...fault, asked, seenBy: check.file };
    console.log(`does not count, as ${check.file} fails without a fault too: ${mutant.path}:${mutant.line}`);
    return undefined;
  }
  return { ...fault, asked, seenBy: null };
}

/** A copy in its present state, built when the first test file needs that. */
function treeOf(root: string): { passes(check: Reaching): Promise<boolean> } {
  let built: Promise<boolean> | undefined;
  return {
    async passes(check) {
      if (check.isOfBuilt) await (built ??= build(root));
      return passes(root, check, check.seconds);
    },
  };
}

const lineOf = ({ kind, path, line, change, seenBy, asked }: Verdict): string =>
  `${seenBy ?? 'NOT SEEN'} (${asked} asked): ${kind} ${path}:${line} ${change}`;

const kindOf = ({ kind }: { kind: string }): string => kind;

const isSeen = ({ seenBy }: Verdict): boolean => seenBy !== null;
const isSeenAtOnce = (verdict: Verdict): boolean => isSeen(verdict) && !verdict.sinceThen;
const changesSomething = ({ changesNothing }: Verdict): boolean => changesNothing === undefined;

/**
 * The share of all possible faults that tests see, estimated from the tried ones: each kind is weighted by its number.
 */
function shareOf(verdicts: Verdict[], all: Mutant[], sees: (verdict: Verdict) => boolean): number {
  const kinds = [...Map.groupBy(verdicts.filter(changesSomething), kindOf)].map(([kind, tried]) => ({
    places: all.filter(mutant => mutant.kind === kind).length,
    seen: tried.filter(sees).length / tried.length,
  }));
  const places = kinds.reduce((sum, kind) => sum + kind.places, 0);
  return kinds.reduce((sum, kind) => sum + kind.seen * kind.places, 0) / places;
}

function report(verdicts: Verdict[], all: Mutant[], startedAt: Date): string {
  const some = verdicts.filter(changesSomething);
  const of = (them: Verdict[], sees: (verdict: Verdict) => boolean) =>
    `${them.filter(sees).length} (${percent(shareOf(them, all, sees))})`;
  const kinds = [...Map.groupBy(some, kindOf)].map(([kind, tried]) => {
    const places = all.filter(mutant => mutant.kind === kind).length;
    return `| ${kind} | ${places} | ${tried.length} | ${tried.filter(isSeenAtOnce).length} | ${tried.filter(isSeen).length} |`;
  });
  const suiteOf = (file: string) => (file.startsWith('src/') ? 'unit tests' : file.split('/').slice(0, 2).join('/'));
  const suites = Map.groupBy(some, ({ seenBy }) => (seenBy ? suiteOf(seenBy) : 'nobody'));
  const rows = [...suites]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([who, them]) => `| ${who} | ${them.length} |`);
  return `
The proof puts faults into copies of the checkout, one at a time, at places of \`src\` that chance chooses. A condition is
made true or false whatever it says, an operator is replaced, a limit tripled, two steps are exchanged, a call or an undo
is left out. What the compiler refuses does not count. Times are left as they are, because no test asserts one.

It then runs the test files that run the place when all is well, as many as take ${askedSecondsMax / 60} minutes together. A fault is seen
if one of them fails, or does not end in its time. Each fault that nobody saw was looked at. Then a test was written for
it; or it makes no difference that can be seen, and does not count; or it is listed below.
\`test/proof/mutation/verdicts.jsonl\` has each fault of all runs, which are added up here.

| | |
|---|---|
${circumstances(startedAt, seed)}
| Faults tried · that make a difference | ${verdicts.length} · ${some.length} |
| Seen at once (in brackets: each kind by how many faults of it could be made) | ${of(some, isSeenAtOnce)} |
| Seen with the tests that were written since | ${of(some, isSeen)} |

| Kind | Could be made | Tried | Seen at once | Seen now |
|---|---|---|---|---|
${kinds.join('\n')}

| Seen by | Faults |
|---|---|
${rows.join('\n')}

Not seen:

${listOf(some.filter(verdict => !isSeen(verdict)))}

Without a difference that can be seen:

${listOf(verdicts.filter(verdict => !changesSomething(verdict)))}
`;
}

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;

const listOf = (verdicts: Verdict[]): string =>
  verdicts
    .map(({ kind, path, line, change, changesNothing }) => {
      const why = changesNothing === undefined ? '' : `: ${changesNothing}`;
      return `- ${kind}, \`${path}:${line}\`: \`${change.replaceAll('`', "'").replace(/ → nothing$/, ' → left out')}\`${why}`;
    })
    .join('\n') || 'None.';
