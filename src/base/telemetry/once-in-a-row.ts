import { messageOf } from '../error.ts';

/** Calls `log` with the text of an error, unless it is that of the one before. */
export function onceInARow(log: (error: string) => void): (error: unknown) => void {
  let last = '';
  return error => {
    if (last !== messageOf(error)) log((last = messageOf(error)));
  };
}

/** Has what a clock does fail without ending the process: the next time may be better. `log` as in `onceInARow`. */
export function outliving(work: () => void, log: (error: string) => void): () => void {
  const failed = onceInARow(log);
  return () => {
    try {
      work();
    } catch (error) {
      failed(error);
    }
  };
}
