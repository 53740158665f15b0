import { statSync } from 'node:fs';
import type { Room } from './reservations.ts';

/** Unit of `st_blocks`, whatever the file system's blocks are. Source: stat(2). */
const sectorBytes = 512;
/** How often the size of a file is checked, ms. */
const lookEveryMs = 500;

/**
 * Gives room back while somebody else writes a file into it: what is on the disk counts there, and would be counted
 * twice. Ends with the room.
 */
export function countWritten(room: Room, path: string): Room {
  let counted = 0;
  const timer = setInterval(() => {
    const there = (statSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * sectorBytes;
    room.wrote(Math.max(there - counted, 0));
    counted = Math.max(there, counted);
  }, lookEveryMs);
  timer.unref();
  return {
    wrote: bytes => room.wrote(bytes),
    [Symbol.dispose]() {
      clearInterval(timer);
      room[Symbol.dispose]();
    },
  };
}
