/** How much of the output of all processes gets into the log: what there is at once, and how it comes again. */
const linesMax = 500;
const linesPerSecond = 100;
const bytesMax = 256 << 10;
const bytesPerSecond = 64 << 10;
/** Once it was used up, so many lines fit before any does: gaps are few and large, and each is told. */
const linesToReopen = 50;

/** Bounds what the processes of a sandbox put into its log. */
export type OutputBudget = {
  /** Whether anything fits now. */
  isOpen(): boolean;
  /** Uses up a line of `bytes`. */
  spend(bytes: number): void;
};

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
