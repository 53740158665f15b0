import { errno, libc } from '../../native/libc.ts';

/** `lseek(2)`. */
const SEEK_DATA = 3;
const SEEK_HOLE = 4;
/** `errno(3)`: there is no data from this place on. */
const ENXIO = 6;

/** Where a file has data, in order: place and length in bytes. The space between is a hole. */
export function extentsOf(fd: number, sizeBytes: number): [at: number, bytes: number][] {
  const extents: [number, number][] = [];
  for (let at = 0; at < sizeBytes;) {
    const data = seek(fd, at, SEEK_DATA);
    if (data === null) break;
    const hole = Math.min(seek(fd, data, SEEK_HOLE) ?? sizeBytes, sizeBytes);
    if (hole > data) extents.push([data, hole - data]);
    at = hole;
  }
  return extents;
}

function seek(fd: number, from: number, what: number): number | null {
  const at = Number(libc.lseek(fd, from, what));
  if (at >= 0) return at;
  const number = errno();
  if (number === ENXIO) return null;
  throw new Error(`the holes of a file can't be found: errno ${number}`);
}
