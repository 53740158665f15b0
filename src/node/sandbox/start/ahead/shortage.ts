/** Creates that come within so long want their standby sandboxes together. */
const togetherMs = 5_000;
/** Who has come with many creates at once may do so again for that long. */
const expectedMs = 10 * 60_000;

/** How many standby sandboxes creates lately wanted together. */
type Shortage = {
  /** A create wanted one, whether there was one or not. */
  taken(): void;
  /** Another was started. */
  refilled(): void;
  /** The most that were wanted together and not replaced meanwhile, in the last ten minutes, or may be unknown. */
  most(): number;
  /** Expects nothing any more; those who are unknown not for ten minutes. */
  forget(): void;
};

/**
 * Nobody has wanted any yet. `now`: milliseconds of a clock that does not go back. `unknown`: how many may be wanted
 * together by those who have not come yet.
 */
export function createShortage(now: () => number = () => performance.now(), unknown = 0): Shortage {
  let lately: { by: 1 | -1; atMs: number }[] = [];
  /** From the greatest to the least, each later than the one before: what a later one exceeds is not kept. */
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
