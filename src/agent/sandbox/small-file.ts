import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/** Files of the sandbox that the agent reads whole (user lists, cgroup counters) are cut here. */
export const smallFileBytesMax = 4 << 20;

/**
 * The text of a small file, or undefined where there is none. The sandbox can put anything at any path:
 * a pipe there must not make the agent wait, nor an endless file fill its memory.
 */
export function readSmallFile(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return undefined;
  }
  try {
    const facts = fstatSync(fd);
    if (!facts.isFile()) return undefined;
    // Files of proc and cgroup say that they are empty.
    const bytes = new Uint8Array(Math.min(Math.max(facts.size, 16 << 10), smallFileBytesMax));
    let length = 0;
    for (let size = -1; size !== 0 && length < bytes.length; length += size) size = readSync(fd, bytes, length, bytes.length - length, null);
    return new TextDecoder().decode(bytes.subarray(0, length));
  } catch {
    return undefined;
  } finally {
    closeSync(fd);
  }
}
