/** Bytes that may wait to be shown before the next are read: enough to fill some frames, too few to fill memory. */
const waitingBytesMax = 256 * 1024;

/** `show`, whose caller goes on while little waits to be shown, and waits where it is much. */
export function windowed(show: (bytes: Uint8Array) => Promise<void>): (bytes: Uint8Array) => Promise<void> {
  let waiting = 0;
  return async bytes => {
    waiting += bytes.length;
    const shown = show(bytes).finally(() => (waiting -= bytes.length));
    if (waiting >= waitingBytesMax) await shown;
  };
}
