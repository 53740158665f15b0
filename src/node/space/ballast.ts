import { closeSync, fstatSync, openSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { libc } from '../native/libc.ts';
import { isGone } from '../../base/error.ts';

/**
 * Reserved on the disk for the platform's own small writes: deleting something begins with writing that it is deleted.
 */
const ballastBytes = 64 * 1024 ** 2;
/**
 * Below this much free space it is given up, unless somebody is filling the disk right now: they would take it as
 * well.
 */
const givenUpBelowBytes = 32 * 1024 ** 2;
/** If this much less is free than at the last look, somebody is filling the disk. */
const fillingBytes = 1024 ** 2;
/**
 * After this many looks without a loss, nobody is filling it: a file system retries for a while before it refuses a
 * write.
 */
const stillLooks = 10;
/** It is made again when this much is free. */
const madeAgainAboveBytes = 512 * 1024 ** 2;

/** A file that takes room as long as there is some. */
type Ballast = {
  /** Gives it up or makes it again, depending on what is free now. */
  follow(freeBytes: number): void;
};

/** The ballast of a data directory, if it is there. */
export function createBallast(dataDir: string): Ballast {
  const path = pathOf(dataDir);
  let isThere = hasBallast(path);
  let before = 0;
  let still = 0;
  return {
    follow(freeBytes) {
      still = before - freeBytes > fillingBytes ? 0 : still + 1;
      before = freeBytes;
      if (isThere && freeBytes < givenUpBelowBytes && still >= stillLooks) {
        rmSync(path, { force: true });
        isThere = false;
      } else if (!isThere && freeBytes > madeAgainAboveBytes) isThere = makeBallast(path);
    },
  };
}

const pathOf = (dataDir: string) => join(dataDir, 'ballast');

/** Gives the ballast up if the disk is already full: for a start, before it writes anything. Does not make one. */
export function makeRoomToStart(dataDir: string, freeBytes: number): void {
  if (freeBytes < givenUpBelowBytes && hasBallast(pathOf(dataDir))) rmSync(pathOf(dataDir));
}

function hasBallast(path: string): boolean {
  try {
    return statSync(path).blocks > 0;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

/** False if the file system can't promise room: then there is no ballast. */
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
