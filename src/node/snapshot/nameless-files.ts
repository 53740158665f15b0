import { readlinkSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';

/** Unit of `st_blocks`, whatever the file system's blocks are. Source: stat(2). */
const sectorBytes = 512;
/** Open and mapped files of a sandbox that are looked at: it may have millions, and nobody waits for that. */
const looksMax = 100_000;
/** What is looked at in a row, between other work. */
const atOnce = 500;

/** How the kernel shows the path of a file that has none any more. Source: proc_pid_fd(5). */
const deleted = ' (deleted)';
/** Files in memory, which count as memory. */
const inMemory = ['/memfd:', '/SYSV', '/dev/zero', '/dev/shm/'];

/**
 * How much of the disk files take that processes have open or mapped and that have no name: a checkpoint copies them.
 * What can't be looked at counts nothing, nor does what is behind the first `looksMax`.
 */
export async function namelessBytes(pids: readonly number[]): Promise<number> {
  const taken = new Map<string, number>();
  let looks = 0;
  for await (const path of filesOf(pids)) {
    looks++;
    if (looks > looksMax) break;
    if (looks % atOnce === 0) await new Promise(resolve => setImmediate(resolve));
    if (!isNameless(linkOf(path))) continue;
    const found = await stat(path).catch(() => undefined); // closed meanwhile
    if (found?.isFile() && found.nlink === 0) taken.set(`${found.dev}:${found.ino}`, found.blocks * sectorBytes);
  }
  return [...taken.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * The links to open and to mapped files. /proc/PID/maps would have the latter's whole paths, hundreds of megabytes of
 * them where the sandbox likes. Source: proc_pid_fd(5), proc_pid_map_files(5).
 */
async function* filesOf(pids: readonly number[]): AsyncGenerator<string> {
  for (const pid of pids)
    for (const folder of [`/proc/${pid}/fd`, `/proc/${pid}/map_files`])
      for (const name of await readdir(folder).catch(() => [])) yield `${folder}/${name}`;
}

function isNameless(path: string): boolean {
  return path.startsWith('/') && path.endsWith(deleted) && !inMemory.some(start => path.startsWith(start));
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // closed meanwhile
  }
}
