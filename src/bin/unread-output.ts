import { systemCodeOf } from '../base/error.ts';

/** What to do when the output can't be written: nobody reads it any more, or it is a file on a full disk. */
export function unreadOutput(
  stderr: { write(text: string, written: () => void): void },
  exit: (code: number) => void,
): { before(end: () => Promise<void>): () => void; failed(error: Error): void } {
  const ends = new Set<() => Promise<void>>();
  let hasFailed = false;
  return {
    before(end) {
      ends.add(end);
      return () => void ends.delete(end);
    },
    failed(error) {
      // Writes in the meantime fail as well.
      if (hasFailed) return;
      hasFailed = true;
      void Promise.allSettled([...ends].map(end => end())).then(() => {
        // A reader such as `head` closes the pipe once it has enough: that is no failure.
        if (systemCodeOf(error) === 'EPIPE') exit(0);
        else stderr.write(`atoll: the output can't be written: ${error.message}.\n`, () => exit(1));
      });
    },
  };
}
