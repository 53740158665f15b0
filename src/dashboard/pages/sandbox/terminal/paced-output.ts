/** Least and most bytes shown per frame. */
const [bytesMin, bytesMax] = [16 * 1024, 256 * 1024];
/** How long showing output may take per frame, ms: with 8, one frame in ten was late; with 4, little was shown. */
const showMs = 6;
/** Bytes shown per millisecond while nothing is known … */
const rateFirst = 4 * 1024;
/** … and the factor by which the best known rate decays with each slower frame. */
const rateKept = 0.98;
/** Bytes that may wait to be shown before more are read: enough for several frames, too few to fill memory. */
const waitingBytesMax = 512 * 1024;
/** More than this at a time is faster than anybody reads. */
const muchBytes = 64 * 1024;

/**
 * The rate in bytes per millisecond, after showing these took `tookMs`: the best of recent frames. On a busy machine,
 * other work takes time too, and showing less would not speed it up.
 */
export const nextRate = (rate: number, bytes: number, tookMs: number): number =>
  Math.max(rate * rateKept, bytes / Math.max(1, tookMs));

/** How many bytes a frame shows at this rate. */
export const bytesAt = (rate: number): number => Math.round(Math.min(bytesMax, Math.max(bytesMin, rate * showMs)));

type Pace = {
  /** Settles once the bytes are shown. */
  show: (bytes: Uint8Array) => Promise<void>;
  /** Settles at the next frame. */
  frame: () => Promise<unknown>;
  /** The time, ms. */
  now?: () => number;
  /** Called when much begins to wait, and when no longer. */
  onMuch?: (isMuch: boolean) => void;
};

/**
 * Shows output in pieces that leave time for the page's frames: output after a pause at once, and of a flood as many
 * bytes per frame as this machine can show in time. Settles at once while little waits, and later if much does.
 */
export function pacedOutput({
  show,
  frame,
  now = () => performance.now(),
  onMuch,
}: Pace): (bytes: Uint8Array) => Promise<void> {
  const queue: Uint8Array[] = [];
  let waiting = 0;
  let rate = rateFirst;
  let flow: Promise<void> | null = null;
  let isMuch = false;
  const setMuch = (next: boolean) => {
    if (next === isMuch) return;
    isMuch = next;
    onMuch?.(next);
  };
  /** At most this many of the waiting bytes, as one piece: a terminal takes each when its timer fires. */
  const take = (most: number) => {
    const pieces: Uint8Array[] = [];
    let left = most;
    while (left > 0 && queue[0]) {
      const piece = queue[0].subarray(0, left);
      if (piece.length < queue[0].length) queue[0] = queue[0].subarray(piece.length);
      else queue.shift();
      pieces.push(piece);
      left -= piece.length;
    }
    return pieces.length === 1 && pieces[0] ? pieces[0] : joined(pieces, most - left);
  };
  const run = async () => {
    while (waiting > 0) {
      const piece = take(bytesAt(rate));
      const begun = now();
      await show(piece);
      if (piece.length >= bytesMin) rate = nextRate(rate, piece.length, now() - begun);
      waiting -= piece.length;
      await frame();
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

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
