import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, systemCodeOf } from '../../base/error.ts';
import { seal, unseal } from '../../base/seal.ts';
import type { DriverName, Kept, SandboxNetwork, SandboxResources, TemplateImage } from '../../protocol/node.ts';
import type { SandboxVolume } from '../../protocol/volume.ts';

type Known = {
  sandboxId: string;
  executionId: string;
  /** Lets the platform give the agent new settings. The file is readable by root alone. */
  controlToken: string;
  /** What its programs read as the kernel's boot ID (UUID). */
  bootId: string;
  resources: SandboxResources;
  network: SandboxNetwork;
  /** What its root is made from: these layers are not collected. */
  image: TemplateImage;
  /** The copy of the agent that its processes were started from. */
  agentDir: string;
  /** What isolates it. Absent in records of before there was a choice: crun. */
  driver?: DriverName;
  startedAtMs: number;
  /** Absent: none. */
  volumes?: SandboxVolume[];
};

/** The processes of a sandbox on this host. */
export type ProcessPlace = {
  slot: number;
  pid: number;
  /** When the process `pid` started, in clock ticks since boot: a number that was used again is another process. */
  startTicks: number;
};

/** What a node must know about a running sandbox after it was restarted itself. */
export type RunningRecord = Known & ProcessPlace & {
  state: 'running';
  /** Absent where the sandbox was created. */
  resumedFrom?: Kept;
};

/** What a node must know to let a paused sandbox run again, also after the host was restarted. */
export type PausedRecord = Known & {
  state: 'paused';
  kept: Kept;
  pausedAtMs: number;
  /**
   * The processes that its memory was kept of, which may still be there. While they stand still, none has run since. Where
   * they go, a crash has undone the pause before anybody was told of it.
   */
  standing?: ProcessPlace;
  /** Present where nobody answers for it: it stays until an operator decides. */
  setAside?: { atMs: number; reason: string };
};

export type SandboxRecord = RunningRecord | PausedRecord;

/** The sandboxes that the node answers for, one directory each: the record, and a folder with what a pause keeps. */
export type Records = {
  /** The sandbox's disk and, while it is paused with its memory, that. Made where it is missing. */
  keptOf(sandboxId: string): string;
  diskOf(sandboxId: string): string;
  /**
   * From here on a restart of the platform finds the sandbox in this state. That it runs is nothing to tell after a restart
   * of the host; that it is paused also survives that.
   */
  write(record: SandboxRecord): Promise<void>;
  /** From here on a restart removes what is left of the sandbox. */
  forget(sandboxId: string): void;
  /** Removes the sandbox's files. The host's disk takes its time for a large one: nobody else waits for it. */
  remove(sandboxId: string): Promise<void>;
  /**
   * Every sandbox with files here. Those without a record are leftovers; of one whose record is damaged nobody can say what it is.
   * Throws where a record can't be read: what it says is not to be guessed.
   */
  list(): FoundRecord[];
};

export type FoundRecord = { sandboxId: string; record: SandboxRecord | undefined; damaged?: string };

/** Folders of removed sandboxes, emptied, that the next ones get: making and removing two folders costs more than renaming one. */
const spareMax = 64;

/** `key` seals what policies prove themselves with: it is lost when the host restarts, and then nothing runs that needs it. */
export function createRecords(dir: string, key: Uint8Array): Records {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const spareDir = `${dir}-spare`;
  rmSync(spareDir, { recursive: true, force: true });
  mkdirSync(spareDir, { mode: 0o700 });
  const spare: string[] = [];
  const directoryOf = (sandboxId: string) => join(dir, sandboxId);
  const keptOf = (sandboxId: string) => join(directoryOf(sandboxId), 'kept');
  const recordOf = (sandboxId: string) => join(directoryOf(sandboxId), 'record.json');
  return {
    keptOf(sandboxId) {
      const folder = existsSync(directoryOf(sandboxId)) ? undefined : spare.pop();
      if (folder !== undefined) renameSync(folder, directoryOf(sandboxId));
      else mkdirSync(keptOf(sandboxId), { recursive: true, mode: 0o700 });
      return keptOf(sandboxId);
    },
    diskOf: sandboxId => join(keptOf(sandboxId), 'disk.img'),
    async write(record) {
      const path = recordOf(record.sandboxId);
      // A platform that is killed leaves either the old record or the new one.
      writeFileSync(`${path}.new`, JSON.stringify({ ...record, network: seal(key, JSON.stringify(record.network), record.sandboxId) }), { mode: 0o600 });
      const durable = record.state === 'paused';
      if (durable) await sync(`${path}.new`);
      renameSync(`${path}.new`, path);
      if (durable) for (const folder of [directoryOf(record.sandboxId), dir]) await sync(folder);
    },
    forget(sandboxId) {
      const path = recordOf(sandboxId);
      if (!existsSync(path)) return;
      try {
        // The file itself stays for the folder's next sandbox, without a word of this one.
        renameSync(path, `${path}.new`);
        truncateSync(`${path}.new`);
      } catch {
        rmSync(path, { force: true });
      }
    },
    async remove(sandboxId) {
      await rm(join(keptOf(sandboxId), 'disk.img'), { force: true });
      if (spare.length < spareMax && (await isBare(directoryOf(sandboxId)))) {
        const folder = join(spareDir, sandboxId);
        renameSync(directoryOf(sandboxId), folder);
        spare.push(folder);
      } else await rm(directoryOf(sandboxId), { recursive: true, force: true });
    },
    list: () => readdirSync(dir).map(sandboxId => ({ sandboxId, ...read(recordOf(sandboxId), sandboxId, key) })),
  };
}

/** Nothing is left in a sandbox's folder but the empty one for what a pause keeps, and a record that was forgotten. */
async function isBare(directory: string): Promise<boolean> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    const expected = entries.every(entry => (entry.isDirectory() ? entry.name === 'kept' : entry.name === 'record.json.new' && entry.isFile()));
    return expected && (await readdir(join(directory, 'kept'))).length === 0;
  } catch {
    return false; // there is none
  }
}

/** Makes a file, or the names in a folder, survive a crash of the host. */
async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  await handle.sync().finally(() => handle.close());
}

function read(path: string, sandboxId: string, key: Uint8Array): Omit<FoundRecord, 'sandboxId'> {
  const text = readIfThere(path);
  if (text === undefined) return { record: undefined };
  try {
    // Only `write` writes them, and before it sealed anything, it wrote records.
    const stored = JSON.parse(text) as SandboxRecord & { network: SandboxNetwork | string };
    if (stored.sandboxId !== sandboxId || typeof stored.executionId !== 'string') throw new Error('it is of another sandbox');
    return { record: typeof stored.network === 'string' ? { ...stored, network: opened(stored.network, key, sandboxId) } : stored };
  } catch (error) {
    return { record: undefined, damaged: messageOf(error) };
  }
}

/**
 * Of another start of the host, the key is gone: nothing may leave until whoever resumes the sandbox says what. The same holds for
 * what can't be opened for another reason; it says nothing of the sandbox itself.
 */
function opened(sealed: string, key: Uint8Array, sandboxId: string): SandboxNetwork {
  let text: string;
  try {
    text = unseal(key, sealed, sandboxId);
  } catch {
    return { internetAccess: false };
  }
  return JSON.parse(text) as SandboxNetwork;
}

/** Undefined where there is no such file; everything else that keeps it from being read is thrown. */
function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** The system says that there is no such file or process, and not that it could not look. */
export function isGone(error: unknown): boolean {
  return ['ENOENT', 'ESRCH', 'ENOTDIR'].includes(systemCodeOf(error));
}

/** When a process started, in clock ticks since boot; undefined when there is none. Throws where that can't be found out. Source: proc(5), stat field 22. */
export function startTicksOf(pid: number): number | undefined {
  const stat = readIfThere(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // One that only waits to be reaped has ended: its namespaces are gone.
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : Number(fields[19]);
}
