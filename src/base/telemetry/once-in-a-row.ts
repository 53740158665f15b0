import { messageOf } from '../error.ts';

/** Calls `log` with the text of an error, unless the error before had the same text. */
export function onceInARow(log: (error: string) => void): (error: unknown) => void {
  let last = '';
  return error => {
    if (last !== messageOf(error)) log((last = messageOf(error)));
  };
}

/** Lets the work of a timer fail without ending the process: the next run may succeed. `log` as in `onceInARow`. */
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
