import { statSync } from 'node:fs';

/** Unit of `st_blocks`, whatever the file system's blocks are. Source: stat(2). */
const sectorBytes = 512;

/** How much of the host's disk a sparse file takes. */
export function allocatedBytes(file: string): number {
  return statSync(file).blocks * sectorBytes;
}
