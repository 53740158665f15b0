import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Mutant } from './mutants.ts';

/** What became of a fault. */
export type Verdict = Omit<Mutant, 'text' | 'offset'> & {
  /** The test file that saw it; null: none of those that were asked. */
  seenBy: string | null;
  /** How many test files were asked. */
  asked: number;
  /** The test that sees it was written because nobody had. */
  sinceThen?: true;
  /** Why nobody can see it: found by looking at it. */
  changesNothing?: string;
};

/**
 * What became of each fault, a line each, over all runs since the file was made: 300 take hours, which nobody has in
 * one piece. A test that was written since counts for those that are tried after it.
 */
const file = join(import.meta.dir, 'verdicts.jsonl');

/** The verdicts of runs before. */
export const verdictsSoFar = (): Verdict[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line) as Verdict)
    : [];

/** Keeps a verdict for later runs, where the proof is to be written down. */
export function keepVerdict(verdict: Verdict): void {
  if (process.env['PROOF_WRITE']) appendFileSync(file, `${JSON.stringify(verdict)}\n`);
}

/** The fault that a verdict is about: lines before it may have become more or less since. Undefined: its place is gone. */
export function faultOf({ path, kind, change, line }: Verdict, mutants: Mutant[]): Mutant | undefined {
  const alike = mutants.filter(each => each.path === path && each.kind === kind && each.change === change);
  return alike.sort((a, b) => Math.abs(a.line - line) - Math.abs(b.line - line))[0];
}
