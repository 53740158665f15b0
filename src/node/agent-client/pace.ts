/**
 * Bytes read of one program's output in a second. Each message, and each piece of the body, takes the thread as long
 * as so many bytes (`bytesOf`).
 */
const bytesPerSecond = 16 << 20;
const bytesOf = { message: 2 << 10, piece: 256 } as const;
/** How long the output of one program may take the thread in a second: a log looks at each of its lines. */
const msPerSecond = 100;

const secondMs = 1_000;

/**
 * Counts the output of one program, and says for how many milliseconds reading must pause; 0: not at all. Whoever is
 * root in a sandbox can make its agent say any amount, in pieces of any size.
 */
type Pace = (bytes: number, messages: number, pieces: number, ms: number) => number;

/** The pace of a program that begins. */
export function createPace(nowMs: () => number = () => performance.now()): Pace {
  let began = nowMs();
  let left = bytesPerSecond;
  let msLeft = msPerSecond;
  return (bytes, messages, pieces, ms) => {
    const now = nowMs();
    if (now - began >= secondMs) {
      began = now;
      left = bytesPerSecond;
      msLeft = msPerSecond;
    }
    left -= bytes + messages * bytesOf.message + pieces * bytesOf.piece;
    msLeft -= ms;
    return left >= 0 && msLeft >= 0 ? 0 : began + secondMs - now;
  };
}
