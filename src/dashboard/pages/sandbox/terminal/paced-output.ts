/** Bytes that are shown in a frame: the least, at first, and at most. */
const [bytesMin, bytesFirst, bytesMax] = [2 * 1024, 32 * 1024, 256 * 1024];
/** A longer frame was late: less is shown in the next ones, ms. */
const lateMs = 20;
/** How the bytes of a frame change after one that was late, and after one that was not. */
const [lessBy, moreBy] = [0.7, 1.08];
/** Bytes that may wait to be shown before the next are read: enough to fill some frames, too few to fill memory. */
const waitingBytesMax = 256 * 1024;
/** So much at a time is more than anybody reads as it comes. */
const muchBytes = 64 * 1024;

/** Bytes for the next frame, where the last one took `frameMs` and showed as much as it might. */
export function nextBudget(budget: number, frameMs: number): number {
  return Math.min(bytesMax, Math.max(bytesMin, budget * (frameMs > lateMs ? lessBy : moreBy)));
}

type Pace = {
  /** Settles once the bytes are shown. */
  show: (bytes: Uint8Array) => Promise<void>;
  /** Settles at the next frame with its time, ms. */
  frame: () => Promise<number>;
  /** Much waits from now on, or no more. */
  onMuch?: (isMuch: boolean) => void;
};

/**
 * Shows output in pieces that leave time for the frames of the page: what comes after rest at once, and of much as
 * many bytes in each frame as this machine can show in time. Settles at once while little waits, and later where it is
 * much.
 */
export function pacedOutput({ show, frame, onMuch }: Pace): (bytes: Uint8Array) => Promise<void> {
  const queue: Uint8Array[] = [];
  let waiting = 0;
  let budget = bytesFirst;
  let flow: Promise<void> | null = null;
  let isMuch = false;
  const setMuch = (next: boolean) => {
    if (next === isMuch) return;
    isMuch = next;
    onMuch?.(next);
  };
  const take = () => {
    const [head] = queue;
    if (!head) return null;
    const piece = head.subarray(0, budget);
    if (piece.length < head.length) queue[0] = head.subarray(piece.length);
    else queue.shift();
    return piece;
  };
  /** As much as a frame may show. */
  const showFrame = async () => {
    for (let left = Math.round(budget); left > 0;) {
      const piece = take();
      if (!piece) return;
      await show(piece);
      waiting -= piece.length;
      left -= piece.length;
    }
  };
  const run = async () => {
    let last: number | null = null;
    while (queue.length > 0) {
      await showFrame();
      const now = await frame();
      if (last !== null) budget = nextBudget(budget, now - last);
      last = now;
    }
    flow = null;
    setMuch(false);
  };
  return async bytes => {
    queue.push(bytes);
    waiting += bytes.length;
    if (waiting >= muchBytes) setMuch(true);
    flow ??= run();
    while (waiting >= waitingBytesMax && flow) await frame();
  };
}
