import { expect, test } from 'bun:test';

/** One attack: what it tries, in words, and the attempt. An attempt throws if the wall does not hold. */
export type Attack = readonly [name: string, attempt: () => Promise<void> | void];

type Wall = {
  /** What is attacked: `files`, `kernel`, `network`, … */
  readonly name: string;
  /** The least number of attacks in the table; fewer means that some were lost. */
  readonly atLeast: number;
  /**
   * In a slow table, every nth attack runs by default, starting with a different one each day; all run with
   * `ATTACKS=all`. Default 1.
   */
  readonly every?: number;
  /** Longest time of one attempt, ms. Default 30 s. */
  readonly timeoutMs?: number;
};

const dayMs = 86_400_000;

/** Declares a test for each attack on a wall, and one that checks their count and that their names differ. */
export function attackWall({ name, atLeast, every = 1, timeoutMs = 30_000 }: Wall, attacks: readonly Attack[]): void {
  test(`${name}: ${atLeast} attacks and more, each with a name of its own`, () => {
    expect(attacks.length).toBeGreaterThanOrEqual(atLeast);
    expect(new Set(attacks.map(([attack]) => attack)).size).toBe(attacks.length);
  });
  for (const [attack, attempt] of sampleOf(attacks, every))
    test(`${name}: ${attack}`, async () => void (await attempt()), timeoutMs);
}

/** Every nth of a table, a different nth each day, so that all are run in time; the whole with `ATTACKS=all`. */
export function sampleOf<T>(table: readonly T[], every: number): readonly T[] {
  if (process.env['ATTACKS'] === 'all' || every <= 1) return table;
  const offset = Math.floor(Date.now() / dayMs) % every;
  return table.filter((_, index) => index % every === offset);
}
