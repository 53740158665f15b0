import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { systemCodeOf } from './error.ts';
import { newUuid } from './id.ts';

/** Only the owner can read and write it. */
const ownerOnly = 0o600;

/** Text of a file, trimmed; undefined where there is no file. Other failures are thrown. */
export function readIfThere(path: string): string | undefined {
  return ifRead(() => readFileSync(path, 'utf8').trim());
}

/** The same of a file that others make as long as they like: its last `bytesMax` bytes. */
export function readEndIfThere(path: string, bytesMax: number): string | undefined {
  return ifRead(() => {
    const file = openSync(path, 'r');
    try {
      const { size } = fstatSync(file);
      const bytes = Buffer.alloc(Math.min(size, bytesMax));
      return bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, size - bytes.length)).trim();
    } finally {
      closeSync(file);
    }
  });
}

function ifRead(read: () => string): string | undefined {
  try {
    return read();
  } catch (error) {
    // ENOTDIR: a folder on the way is a file. ESRCH: a file of a process that ends while it is read.
    if (['ENOENT', 'ENOTDIR', 'ESRCH'].includes(systemCodeOf(error))) return undefined;
    throw error;
  }
}

/**
 * Writes a small file that only its owner can read. A crash leaves the old file or the new one; once this has returned,
 * even a loss of power leaves the new one.
 */
export function writeWhole(path: string, text: string): void {
  const draft = `${path}.new`;
  writeOut(draft, 'w', text);
  renameSync(draft, path);
  syncNames(path);
}

/**
 * Reads a small secret file, or makes it with `make`. It appears whole or not at all, and only its owner can read it.
 */
export function readOrMake(path: string, make: () => string): string {
  const known = readIfThere(path);
  if (known !== undefined) return known;
  const text = make();
  // A unique name: what a crash has left must not be in the way of the next process with the same number.
  const draft = `${path}.${newUuid()}`;
  try {
    writeOut(draft, 'wx', text);
    // Unlike a rename, a link never replaces a file that somebody else has just made.
    linkSync(draft, path);
    syncNames(path);
    return text;
  } catch (error) {
    const made = readIfThere(path);
    if (made === undefined) throw error;
    return made;
  } finally {
    rmSync(draft, { force: true });
  }
}

function writeOut(path: string, flags: 'w' | 'wx', text: string): void {
  const file = openSync(path, flags, ownerOnly);
  try {
    // Writes all of it: a plain write stops short on a full disk, without an error.
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** A name belongs to its folder, and reaches the disk with that. */
function syncNames(path: string): void {
  const folder = openSync(dirname(path), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
