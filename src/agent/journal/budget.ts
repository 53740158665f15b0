/** Budget for the output of all processes in the log: what there is at once, and how fast it comes back. */
const linesMax = 500;
const linesPerSecond = 100;
const bytesMax = 256 << 10;
const bytesPerSecond = 64 << 10;
/** Lines that must fit again after the budget was used up: so gaps are few and large, and each is reported. */
const linesToReopen = 50;

/** Bounds what the processes of a sandbox put into its log. */
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
