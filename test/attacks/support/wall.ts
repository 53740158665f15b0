import { expect, test } from 'bun:test';

/** One attack: what it tries, in words, and the attempt. An attempt throws where the wall does not hold. */
export type Attack = readonly [name: string, attempt: () => Promise<void> | void];

type Wall = {
  /** What the attacks are made on: `files`, `kernel`, `network`, … */
  readonly name: string;
  /** How many attacks the table has at least; fewer means that some were lost. */
  readonly atLeast: number;
  /**
   * Of a slow table, every nth is run by default, the first one each day another; all with `ATTACKS=all`. Default 1.
   */
  readonly every?: number;
  /** Longest time of one attempt, ms. Default 30 s. */
  readonly timeoutMs?: number;
};

const dayMs = 86_400_000;

/** Declares a test for each attack on a wall, and one that holds their count and that no two have the same name. */
export function attackWall({ name, atLeast, every = 1, timeoutMs = 30_000 }: Wall, attacks: readonly Attack[]): void {
  test(`${name}: ${atLeast} attacks and more, each with a name of its own`, () => {
    expect(attacks.length).toBeGreaterThanOrEqual(atLeast);
    expect(new Set(attacks.map(([attack]) => attack)).size).toBe(attacks.length);
  });
  for (const [attack, attempt] of sampleOf(attacks, every))
    test(`${name}: ${attack}`, async () => void (await attempt()), timeoutMs);
}

/** Every nth of a table, another nth each day, so that all are run in time; the whole with `ATTACKS=all`. */
export function sampleOf<T>(table: readonly T[], every: number): readonly T[] {
  if (process.env['ATTACKS'] === 'all' || every <= 1) return table;
  const offset = Math.floor(Date.now() / dayMs) % every;
  return table.filter((_, index) => index % every === offset);
}
