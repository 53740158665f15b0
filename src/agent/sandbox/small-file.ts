import { closeSync, constants, fstatSync, ftruncateSync, mkdirSync, openSync, readSync } from 'node:fs';
import { writeAll } from '../../base/write-all.ts';

/** Limit of sandbox files that the agent reads whole (user lists, cgroup counters); longer ones are cut here. */
const smallFileBytesMax = 4 << 20;

/**
 * The text of a small file; undefined if there is none. The sandbox can put anything at any path: a pipe must not make
 * the agent wait, nor an endless file fill its memory.
 */
export function readSmallFile(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return undefined; // nothing is there, or a socket, which can't be opened
  }
  try {
    const facts = fstatSync(fd);
    if (!facts.isFile()) return undefined;
    // Files of proc and cgroup claim to be empty.
    const bytes = new Uint8Array(Math.min(Math.max(facts.size, 16 << 10), smallFileBytesMax));
    let length = 0;
    for (let size = -1; size !== 0 && length < bytes.length; length += size)
      size = readSync(fd, bytes, length, bytes.length - length, null);
    return new TextDecoder().decode(bytes.subarray(0, length));
  } catch {
    return undefined; // a counter of a cgroup that was removed meanwhile (ENODEV)
  } finally {
    closeSync(fd);
  }
}

/**
 * Rewrites a small file, and creates the directories above it. An existing file keeps its owner and mode. Throws for
 * anything but a regular file: a pipe must not make the agent wait.
 */
export function writeSmallFile(path: string, text: string): void {
  mkdirSync(path.slice(0, path.lastIndexOf('/')) || '/', { recursive: true });
  const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NONBLOCK | constants.O_NOCTTY, 0o644);
  try {
    if (!fstatSync(fd).isFile()) throw new Error(`${path} is not a regular file`);
    ftruncateSync(fd, 0);
    writeAll(fd, new TextEncoder().encode(text));
  } finally {
    closeSync(fd);
  }
}
