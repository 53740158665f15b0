import type { Hit, Hits } from '../store.ts';

/** Lines reported per search. */
export const hitsMax = 500;

/**
 * Reads the output of `grep -nZ`, one line per hit: path, NUL, line number, colon, text. A NUL alone: not all files
 * were searched.
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
