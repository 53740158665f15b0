/** What is read of one program's output in a second; a message takes the thread as long as so many bytes. */
const bytesPerSecond = 16 << 20;
const bytesOfMessage = 2 << 10;

const secondMs = 1_000;

/**
 * Counts what comes of one program, and says for how many milliseconds no more may be read; 0: go on. Whoever is root
 * in a sandbox can have its agent say as much as he likes, in as small pieces.
 */
type Pace = (bytes: number, messages: number) => number;

/** One of a program that begins. */
export function createPace(nowMs: () => number = () => performance.now()): Pace {
  let began = nowMs();
  let left = bytesPerSecond;
  return (bytes, messages) => {
    const now = nowMs();
    if (now - began >= secondMs) {
      began = now;
      left = bytesPerSecond;
    }
    left -= bytes + messages * bytesOfMessage;
    return left >= 0 ? 0 : began + secondMs - now;
  };
}
