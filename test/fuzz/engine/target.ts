import type { Random } from './random.ts';

/**
 * The outcome of an input, in a word or two: `accepted`, `invalid`. Inputs with a new outcome are used for breeding.
 */
export type Outcome = string;

/** One parser under test. */
export type Target = {
  /** Kebab-case; names the folder of its kept inputs. */
  name: string;
  /** Whole inputs that the parser knows well, from which mutations start. */
  corpus: readonly (string | Uint8Array)[];
  /** Words of its language that random changes would not find. */
  dictionary?: readonly (string | Uint8Array)[];
  /** Makes an input of the parser's own structure. */
  generate?(random: Random): Uint8Array;
  /** Longest input of an ordinary run, bytes. */
  bytesMax?: number;
  /** Limit of one run's cost, ms of processor time. */
  runCostMsMax?: number;
  /**
   * Throws if an invariant does not hold. `random` follows from the input, so that the input alone repeats a failure.
   */
  check(input: Buffer, random: Random): Outcome | Promise<Outcome>;
  /**
   * The work whose cost must grow no faster than its input, and the longest input that may reach it. Absent: `check`,
   * 64 KiB.
   */
  work?(input: Buffer): unknown;
  workBytesMax?: number;
  /** Shapes that were hard for parsers of this kind, tried in each campaign. */
  pumps?: readonly Pump[];
};

/** An input of any length: `unit` repeated between two ends. Text has one character per byte. */
export type Pump = { prefix: string; unit: string; suffix: string };

/** Fails the run if the invariant does not hold. */
export function holds(condition: unknown, invariant: string): asserts condition {
  if (!condition) throw new Error(`does not hold: ${invariant}`);
}

/** Fails the run if two results are not deeply equal. */
export function agree(one: unknown, other: unknown, invariant: string): void {
  if (!Bun.deepEquals(one, other, true))
    throw new Error(
      `does not hold: ${invariant}: ${Bun.inspect(one).slice(0, 400)} and ${Bun.inspect(other).slice(0, 400)}`,
    );
}
