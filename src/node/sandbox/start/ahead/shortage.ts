/** Creates that come within this time want their standby sandboxes together. */
const togetherMs = 5_000;
/** A client that came with many creates at once may do so again for this long. */
const expectedMs = 10 * 60_000;

/** How many standby sandboxes creates have recently wanted together. */
type Shortage = {
  /** Called when a create wanted one, whether there was one or not. */
  taken(): void;
  /** Called when another was started. */
  refilled(): void;
  /**
   * The most in the last ten minutes that were wanted together and not replaced meanwhile, or `unknown` if that is
   * more.
   */
  most(): number;
  /** Expects nothing any more; for ten minutes this also holds for `unknown`. */
  forget(): void;
};

/**
 * A shortage before the first create. `now`: milliseconds of a clock that does not go back. `unknown`: how many
 * clients that have not come yet may want together.
 */
export function createShortage(now: () => number = () => performance.now(), unknown = 0): Shortage {
  let lately: { by: 1 | -1; atMs: number }[] = [];
  /** From the greatest to the least, each later than the one before: a peak that a later one exceeds is dropped. */
  let peaks: { count: number; atMs: number }[] = [];
  let forgottenAtMs = -Infinity;

  const note = (by: 1 | -1) => {
    const atMs = now();
    lately = [...lately.filter(one => one.atMs > atMs - togetherMs), { by, atMs }];
    const count = lately.reduce((sum, one) => Math.max(0, sum + one.by), 0);
    if (count > 0) peaks = [...peaks.filter(peak => peak.count > count), { count, atMs }];
  };
  return {
    taken: () => note(1),
    refilled: () => note(-1),
    most() {
      peaks = peaks.filter(({ atMs }) => atMs > now() - expectedMs);
      const expected = forgottenAtMs > now() - expectedMs ? 0 : unknown;
      return Math.max(expected, peaks[0]?.count ?? 0);
    },
    forget() {
      forgottenAtMs = now();
      lately = [];
      peaks = [];
    },
  };
}
