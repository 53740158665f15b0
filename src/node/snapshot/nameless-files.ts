import { closeSync, openSync, readlinkSync, readSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';

/** Unit of `st_blocks`, whatever the file system's blocks are. Source: stat(2). */
const sectorBytes = 512;
/**
 * How many open files of a sandbox, and mapped ones without a name, are looked at, and how many bytes are read of the
 * lists of mapped files, usually some 100 per file: there may be millions, and nobody waits for that.
 */
const most = { looks: 100_000, bytes: 16 << 20 } as const;
/** How many files are looked at, and pieces are read, between two turns of other work. */
const atOnce = { looks: 500, pieces: 16 } as const;
const pieceBytes = 64 << 10;

/** How the kernel marks the path of a file that has none any more. Source: proc_pid_fd(5). */
const deleted = ' (deleted)';
/** Files in memory that have no other name, as the kernel shows them: memfd_create(2), shmat(2), shared mmap(2). */
const memoryFiles = ['/memfd:', '/SYSV', '/dev/zero'];
/** Files in memory, which count as memory. */
const inMemory = [...memoryFiles, '/dev/shm/'];

/** How much may still be looked at and read; below zero: there was more. */
type Left = { looks: number; bytes: number };

/**
 * How much of the disk is taken by files that processes have open or mapped and that have no name: a checkpoint copies
 * them. Files that can't be looked at do not count. Null: there are more than `most`.
 */
export async function namelessBytes(pids: readonly number[], { looks, bytes }: Left = most): Promise<number | null> {
  const taken = new Map<string, number>();
  const left = { looks, bytes };
  for await (const path of linksTo(isNameless, pids, left)) {
    const found = await stat(path).catch(() => undefined); // closed meanwhile
    if (found?.isFile() && found.nlink === 0) taken.set(`${found.dev}:${found.ino}`, found.blocks * sectorBytes);
  }
  if (left.looks < 0 || left.bytes < 0) return null;
  return sumOf(taken);
}

/**
 * The total length, holes included, of files in memory that processes have open or mapped. A checkpoint processes them
 * page by page, even where there is no page. Files beyond the limit do not count.
 */
export async function memoryFileBytes(pids: readonly number[], { looks, bytes }: Left = most): Promise<number> {
  const lengths = new Map<string, number>();
  for await (const path of linksTo(isInMemoryAlone, pids, { looks, bytes })) {
    const found = await stat(path).catch(() => undefined); // closed meanwhile
    if (found) lengths.set(`${found.dev}:${found.ino}`, found.size);
  }
  return sumOf(lengths);
}

const sumOf = (amounts: ReadonlyMap<string, number>) => [...amounts.values()].reduce((sum, bytes) => sum + bytes, 0);

type Kind = (path: string) => boolean;

/** Links to files of a kind, which is recognized by how the kernel shows their paths. Source: proc_pid_fd(5). */
async function* linksTo(kind: Kind, pids: readonly number[], left: Left): AsyncGenerator<string> {
  for (const pid of pids) {
    for (const name of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      if (--left.looks < 0) return;
      if (left.looks % atOnce.looks === 0) await giveWay();
      if (kind(linkOf(`/proc/${pid}/fd/${name}`))) yield `/proc/${pid}/fd/${name}`;
    }
    yield* mapped(kind, pid, left);
    if (left.looks < 0 || left.bytes < 0) return;
  }
}

/**
 * The same for mapped files, each once. Reading the links of map_files takes ten times as long as reading maps; of
 * maps, only lines about such files are split into words. Source: proc_pid_maps(5), proc_pid_map_files(5).
 */
async function* mapped(kind: Kind, pid: number, left: Left): AsyncGenerator<string> {
  const known = new Set<string>();
  let rest = '';
  for await (const piece of mapsOf(pid)) {
    left.bytes -= piece.length;
    if (left.bytes < 0) return;
    const text = rest + piece;
    const whole = text.lastIndexOf('\n') + 1;
    for (let end = text.indexOf(`${deleted}\n`); end >= 0; end = text.indexOf(`${deleted}\n`, end + 1)) {
      const line = text.slice(text.lastIndexOf('\n', end) + 1, end + deleted.length);
      const [, from = '', to = '', file = '', path = ''] = /^0*(\w+)-0*(\w+) \S+ \S+ (\S+ \S+) *(.*)/.exec(line) ?? [];
      if (!kind(path) || known.has(file)) continue;
      known.add(file);
      if (--left.looks < 0) return;
      yield `/proc/${pid}/map_files/${from}-${to}`;
    }
    rest = text.slice(whole);
  }
}

/** The list of files that a process has mapped, piece by piece; nothing if it has ended. */
async function* mapsOf(pid: number): AsyncGenerator<string> {
  let file: number;
  try {
    file = openSync(`/proc/${pid}/maps`, 'r');
  } catch {
    return; // it has ended
  }
  try {
    const piece = Buffer.allocUnsafe(pieceBytes);
    for (let count = 1; ; count++) {
      const size = readSync(file, piece);
      if (size === 0) return;
      yield piece.toString('latin1', 0, size);
      if (count % atOnce.pieces === 0) await giveWay();
    }
  } catch {
    return; // it ends just now
  } finally {
    closeSync(file);
  }
}

const giveWay = () => new Promise(resolve => setImmediate(resolve));

function isNameless(path: string): boolean {
  return path.startsWith('/') && path.endsWith(deleted) && !inMemory.some(start => path.startsWith(start));
}

function isInMemoryAlone(path: string): boolean {
  return path.endsWith(deleted) && memoryFiles.some(start => path.startsWith(start));
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // closed meanwhile
  }
}
