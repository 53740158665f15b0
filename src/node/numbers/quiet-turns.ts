/**
 * What all sandboxes together may use of a processor without anybody being looked at, microseconds: half of the unit in
 * which the kernel tells processor time (USER_HZ, time(7)).
 */
const unseenUs = 5_000;
/** So many turns in a row are passed at most. */
const passedMax = 3;
/** Processors that a sandbox has used of late, from which on the next look finds less and says so. */
const stirsFrom = 0.01;

/** Says which turns find nothing to do. A look at hundreds of idle sandboxes costs more than all that they do. */
type QuietTurns = {
  /** Whether a turn may be passed: nobody in it has done anything since it was taken that could be seen. */
  pass(turn: number): boolean;
  /** Records that everybody of a turn was looked at since `pass`; `uses`: processors that each has used of late. */
  looked(turn: number, uses: Iterable<number>): void;
};

/** `usedUs`: processor time of all sandboxes together; it may fail, and then no turn is passed. */
export function quietTurns(usedUs: () => number): QuietTurns {
  /** By turn, what all had used when it was taken, and how often it was passed since. */
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
      // One that did a lot comes after others until some looks have found that it does no more.
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
