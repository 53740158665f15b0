/**
 * How much of a processor all sandboxes together may use without a look at any of them, microseconds: half of the unit
 * in which the kernel reports processor time (USER_HZ, time(7)).
 */
const unseenUs = 5_000;
/** At most this many turns in a row are skipped. */
const passedMax = 3;
/** From this many recently used processors on, the next look finds a lower use and reports that. */
const stirsFrom = 0.01;

/** Decides which turns have nothing to do. Looking at hundreds of idle sandboxes costs more than all that they do. */
type QuietTurns = {
  /** Whether a turn may be skipped: nobody in it has visibly done anything since it was last taken. */
  pass(turn: number): boolean;
  /**
   * Records that all sandboxes of a turn were looked at since `pass`; `uses`: processors that each has used recently.
   */
  looked(turn: number, uses: Iterable<number>): void;
};

/** `usedUs`: processor time of all sandboxes together; it may fail, and then no turn is skipped. */
export function quietTurns(usedUs: () => number): QuietTurns {
  /** For each turn, the total use when it was last taken, and how often it was skipped since. */
  const quiet = new Map<number, { usedUs: number; passed: number }>();
  let nowUs = NaN;
  return {
    pass(turn) {
      nowUs = readOr(usedUs, NaN);
      const last = quiet.get(turn);
      const mayPass = last !== undefined && nowUs - last.usedUs < unseenUs && last.passed < passedMax;
      if (mayPass) last.passed++;
      return mayPass;
    },
    looked(turn, uses) {
      // A sandbox that did a lot comes after others until some looks have found that it no longer does.
      if ([...uses].some(use => use >= stirsFrom)) quiet.delete(turn);
      else quiet.set(turn, { usedUs: nowUs, passed: 0 });
    },
  };
}

function readOr(read: () => number, otherwise: number): number {
  try {
    return read();
  } catch {
    return otherwise; // the group of all is made again, or read later
  }
}
