import { closeSync, fstatSync, openSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { libc } from '../native/libc.ts';
import { isGone } from '../sandbox/record.ts';

/** Kept on the disk for the platform's own small writes: who deletes something writes first that it is deleted. */
const ballastBytes = 64 * 1024 ** 2;
/** Less than this free, and it is given up. */
const givenUpBelowBytes = 32 * 1024 ** 2;
/** It is made again when so much is free. */
const madeAgainAboveBytes = 512 * 1024 ** 2;

/** A file that takes room as long as there is some. */
export type Ballast = {
  /** Gives it up or makes it again, by what is free now. */
  follow(freeBytes: number): void;
};

export function createBallast(dataDir: string): Ballast {
  const path = join(dataDir, 'ballast');
  let isThere = hasBallast(path);
  return {
    follow(freeBytes) {
      if (isThere && freeBytes < givenUpBelowBytes) {
        rmSync(path, { force: true });
        isThere = false;
      } else if (!isThere && freeBytes > madeAgainAboveBytes) isThere = makeBallast(path);
    },
  };
}

/** Gives the ballast up where the disk is full already: for a start, before it writes anything. */
export function makeRoomToStart(dataDir: string, freeBytes: number): void {
  createBallast(dataDir).follow(freeBytes);
}

function hasBallast(path: string): boolean {
  try {
    return statSync(path).blocks > 0;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

/** False where the file system can't promise room: then there is none. */
function makeBallast(path: string): boolean {
  const file = openSync(path, 'w', 0o600);
  try {
    if (libc.fallocate(file, 0, 0n, BigInt(ballastBytes)) === 0 && fstatSync(file).blocks > 0) return true;
  } finally {
    closeSync(file);
  }
  rmSync(path, { force: true });
  return false;
}
