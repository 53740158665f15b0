import { expect, test } from 'bun:test';
import { sourceFiles } from '../tidy/source-files.ts';
import { allChecks, passes } from './mutation/checks.ts';
import { build, copyOfCheckout, putInto } from './mutation/copy.ts';
import { mutantsOf } from './mutation/mutants.ts';
import { faultOf, type Verdict, verdictsSoFar } from './mutation/verdicts.ts';

// `npm run prove -- again`: tests that were written for unseen faults see the fault, and pass without it.

const dayMs = 24 * 60 * 60_000;
const written = verdictsSoFar().filter(({ sinceThen }) => sinceThen);

test(
  `${written.length} faults are seen by the tests that were written for them`,
  async () => {
    await using copy = await copyOfCheckout();
    const mutants = sourceFiles(['src']).flatMap(mutantsOf);
    const wrong: string[] = [];
    for (const [file, verdicts] of Map.groupBy(written, ({ seenBy }) => seenBy)) {
      const check = allChecks(copy.root).find(each => each.file === file);
      if (!check || !(await build(copy.root)) || !(await passes(copy.root, check))) wrong.push(`${file} does not pass`);
      else for (const verdict of verdicts) if (!(await isSeen(verdict))) wrong.push(lineOf(verdict));
      console.log(`${file}: ${verdicts.length} faults asked of it, ${wrong.length} wrong so far`);
    }
    expect(wrong).toEqual([]);

    async function isSeen(verdict: Verdict): Promise<boolean> {
      const mutant = faultOf(verdict, mutants);
      const check = allChecks(copy.root).find(each => each.file === verdict.seenBy);
      // A place that no longer exists can't be wrong.
      if (!mutant || !check) return true;
      using _fault = putInto(copy.root, mutant);
      return !(await build(copy.root)) || !(await passes(copy.root, check));
    }
  },
  dayMs,
);

const lineOf = ({ path, line, change, seenBy }: Verdict): string =>
  `${path}:${line} ${change} is not seen by ${seenBy}`;
