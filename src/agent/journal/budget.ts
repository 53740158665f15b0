/** Budget for the output of all processes in the log: the initial amount, and how fast it refills. */
const linesMax = 500;
const linesPerSecond = 100;
const bytesMax = 256 << 10;
const bytesPerSecond = 64 << 10;
/** Lines that must fit again after the budget was used up, so that gaps are few and large, and each is reported. */
const linesToReopen = 50;

/** Bounds the output that a sandbox's processes put into its log. */
export type OutputBudget = {
  /** Says whether anything fits now. */
  isOpen(): boolean;
  /** Uses up a line of `bytes`. */
  spend(bytes: number): void;
};

/** A full budget. `now`: milliseconds of a clock that nobody can set. */
export function createOutputBudget(now: () => number = () => performance.now()): OutputBudget {
  let [lines, bytes, at] = [linesMax, bytesMax, now()];
  let open = true;
  return {
    isOpen() {
      const passedSeconds = (now() - at) / 1000;
      at = now();
      lines = Math.min(linesMax, lines + passedSeconds * linesPerSecond);
      bytes = Math.min(bytesMax, bytes + passedSeconds * bytesPerSecond);
      open = bytes > 0 && lines >= (open ? 1 : linesToReopen);
      return open;
    },
    spend(count) {
      lines -= 1;
      bytes -= count;
    },
  };
}
