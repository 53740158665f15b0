/**
 * What is read of one program's output in a second; a message takes the thread as long as so many bytes, and so does a
 * piece of the body that it comes in.
 */
const bytesPerSecond = 16 << 20;
const bytesOf = { message: 2 << 10, piece: 256 } as const;

const secondMs = 1_000;

/**
 * Counts what comes of one program, and says for how many milliseconds no more may be read; 0: go on. Whoever is root
 * in a sandbox can have its agent say as much as he likes, in as small pieces.
 */
type Pace = (bytes: number, messages: number, pieces: number) => number;

/** One of a program that begins. */
export function createPace(nowMs: () => number = () => performance.now()): Pace {
  let began = nowMs();
  let left = bytesPerSecond;
  return (bytes, messages, pieces) => {
    const now = nowMs();
    if (now - began >= secondMs) {
      began = now;
      left = bytesPerSecond;
    }
    left -= bytes + messages * bytesOf.message + pieces * bytesOf.piece;
    return left >= 0 ? 0 : began + secondMs - now;
  };
}
