import { readlinkSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';

/** Unit of `st_blocks`, whatever the file system's blocks are. Source: stat(2). */
const sectorBytes = 512;
/** Open files that are looked at in a row, between other work. */
const atOnce = 500;

/** How the kernel shows the path of a file that has none any more. Source: proc_pid_fd(5). */
const deleted = ' (deleted)';
/** Files in memory, which count as memory. */
const inMemory = ['/memfd:', '/SYSV', '/dev/zero', '/dev/shm/'];

/**
 * How much of the disk files take that processes have open or mapped and that have no name: a checkpoint copies them.
 * What can't be looked at counts nothing.
 */
export async function namelessBytes(pids: readonly number[]): Promise<number> {
  const taken = new Map<string, number>();
  for (const pid of pids)
    for (const path of [...(await openPaths(pid)), ...(await mappedPaths(pid))]) {
      const found = await stat(path).catch(() => undefined); // closed meanwhile
      if (found?.isFile() && found.nlink === 0) taken.set(`${found.dev}:${found.ino}`, found.blocks * sectorBytes);
    }
  return [...taken.values()].reduce((sum, bytes) => sum + bytes, 0);
}

async function openPaths(pid: number): Promise<string[]> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => []);
  const found: string[] = [];
  for (const [index, name] of names.entries()) {
    if (index % atOnce === atOnce - 1) await new Promise(resolve => setImmediate(resolve));
    if (isNameless(linkOf(`${folder}/${name}`))) found.push(`${folder}/${name}`);
  }
  return found;
}

/** Source: proc_pid_maps(5), proc_pid_map_files(5). */
async function mappedPaths(pid: number): Promise<string[]> {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8').catch(() => '');
  return maps.split('\n').flatMap(line => {
    const [range = '', , , , , ...path] = line.split(/ +/);
    return isNameless(path.join(' ')) ? [`/proc/${pid}/map_files/${range}`] : [];
  });
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
