import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Mutant } from './mutants.ts';

/** The outcome of a fault. */
export type Verdict = Omit<Mutant, 'text' | 'offset'> & {
  /** The test file that saw it; null: none of those that were run. */
  seenBy: string | null;
  /** How many test files were run. */
  asked: number;
  /** The test that sees it was written because none had seen it. */
  sinceThen?: true;
  /** Why nobody can see it, found by examining it. */
  changesNothing?: string;
};

/**
 * The outcome of each fault, one per line, over all runs since the file was made: 300 take hours, too long for one run.
 * A test written since counts for the faults that are tried after it.
 */
const file = join(import.meta.dir, 'verdicts.jsonl');

/** The verdicts of earlier runs. */
export const verdictsSoFar = (): Verdict[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line) as Verdict)
    : [];

/** Keeps a verdict for later runs, if the proof is to be written down. */
export function keepVerdict(verdict: Verdict): void {
  if (process.env['PROOF_WRITE']) appendFileSync(file, `${JSON.stringify(verdict)}\n`);
}

/** The fault of a verdict: lines before it may have been added or removed since. Undefined: its place is gone. */
export function faultOf({ path, kind, change, line }: Verdict, mutants: Mutant[]): Mutant | undefined {
  const alike = mutants.filter(each => each.path === path && each.kind === kind && each.change === change);
  return alike.sort((a, b) => Math.abs(a.line - line) - Math.abs(b.line - line))[0];
}
