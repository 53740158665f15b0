import type { Hit, Hits } from '../store.ts';

/** Lines that are told of one search. */
export const hitsMax = 500;

/**
 * Reads what `grep -nZ` has written, a line for each hit: path, NUL, number of the line, colon, its text. NUL alone:
 * not all was looked at.
 */
export function hitsOf(output: string): Hits {
  const lines = output.split('\n');
  const hits = lines.flatMap((line): Hit[] => {
    const [path, rest = ''] = line.split('\0', 2);
    const [, number, text = ''] = /^(\d+):(.*)$/.exec(rest) ?? [];
    return path === undefined || number === undefined ? [] : [{ path, line: Number(number), text }];
  });
  return { hits: hits.slice(0, hitsMax), isMore: hits.length > hitsMax, isTimedOut: lines.includes('\0') };
}
