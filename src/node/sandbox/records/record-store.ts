import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readdir, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { isGone, messageOf } from '../../../base/error.ts';
import { encrypt, decrypt } from '../../../base/crypto/encryption.ts';
import { readIfThere } from '../../../base/small-file.ts';
import { syncPath } from '../../../base/sync.ts';
import type { SandboxNetwork } from '../../../protocol/node.ts';
import type { SandboxRecord } from './record.ts';
import type { RecordKey } from './record-key.ts';

/**
 * The sandboxes that the node is responsible for, one directory each: the record, and a folder with what a pause
 * keeps.
 */
export type Records = {
  /** The folder of the sandbox's disk and, while it is paused with its memory, of the memory. Made if it is missing. */
  keptOf(sandboxId: string): string;
  diskOf(sandboxId: string): string;
  /**
   * After this a restart of the platform finds the sandbox in this state. That a sandbox is paused, and every state
   * after its first pause, also survives a loss of power; a sandbox that was not paused yet leaves nothing after one.
   */
  write(record: SandboxRecord): Promise<void>;
  /** After this a restart removes what is left of the sandbox. */
  forget(sandboxId: string): void;
  /** Removes the sandbox's files. The host's disk takes its time for a large one: nobody else waits for it. */
  remove(sandboxId: string): Promise<void>;
  /**
   * Every sandbox with files here. Those without a record are leftovers, and so are those whose record a loss of power
   * took before it was on the disk; if any other record is damaged, nobody can say what that sandbox is. Throws if a
   * record can't be read: its content must not be guessed.
   */
  list(): FoundRecord[];
};

/** A sandbox's folder: its record, or why that can't be read. */
type FoundRecord = { sandboxId: string; record: SandboxRecord | undefined; damaged?: string };

/**
 * Emptied folders of removed sandboxes, for the next ones: making and removing two folders costs more than renaming
 * one.
 */
const spareMax = 64;

/** In a sandbox's folder since its first pause: everything written of it is on the disk before it counts. */
const durableMark = 'durable';

/**
 * `key` encrypts the credentials in policies: it is lost when the host restarts, and then no process is left that
 * needs it.
 */
export function createRecords(dir: string, { key, isNew: hostHasRestarted }: RecordKey): Records {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const spareDir = `${dir}-spare`;
  rmSync(spareDir, { recursive: true, force: true });
  mkdirSync(spareDir, { mode: 0o700 });
  const spare: string[] = [];
  const directoryOf = (sandboxId: string) => join(dir, sandboxId);
  const keptOf = (sandboxId: string) => join(directoryOf(sandboxId), 'kept');
  const recordOf = (sandboxId: string) => join(directoryOf(sandboxId), 'record.json');
  const markOf = (sandboxId: string) => join(directoryOf(sandboxId), durableMark);
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
      writeFileSync(
        `${path}.new`,
        JSON.stringify({ ...record, network: encrypt(key, JSON.stringify(record.network), record.sandboxId) }),
        { mode: 0o600 },
      );
      const durable = record.state === 'paused' || existsSync(markOf(record.sandboxId));
      if (durable) {
        writeFileSync(markOf(record.sandboxId), '', { mode: 0o600 });
        await syncPath(`${path}.new`);
      }
      renameSync(`${path}.new`, path);
      // Both at once: one commit of the file system's journal serves both.
      if (durable) await Promise.all([directoryOf(record.sandboxId), dir].map(syncPath));
    },
    forget(sandboxId) {
      const path = recordOf(sandboxId);
      try {
        // The file itself stays for the folder's next sandbox.
        renameSync(path, `${path}.new`);
      } catch (error) {
        if (!isGone(error)) rmSync(path, { force: true });
      }
    },
    async remove(sandboxId) {
      await rm(join(keptOf(sandboxId), 'disk.img'), { force: true });
      if (spare.length < spareMax && (await isBare(directoryOf(sandboxId)))) {
        const folder = join(spareDir, sandboxId);
        // The next sandbox must not find a word of this one. The host's disk takes longer for that than for a name:
        // nobody waits here. One byte stays: after a file was cut to nothing, ext4 waits for everything that is
        // written to it next (auto_da_alloc).
        await truncate(`${recordOf(sandboxId)}.new`, 1).catch(unlessGone);
        renameSync(directoryOf(sandboxId), folder);
        spare.push(folder);
      } else await rm(directoryOf(sandboxId), { recursive: true, force: true });
    },
    list: () =>
      readdirSync(dir).map(sandboxId => {
        const found = read(recordOf(sandboxId), sandboxId, key);
        const wasLost = found.damaged !== undefined && hostHasRestarted && !existsSync(markOf(sandboxId));
        return { sandboxId, ...(wasLost ? { record: undefined } : found) };
      }),
  };
}

/** Whether a sandbox's folder contains only the empty one for what a pause keeps, and a record that was forgotten. */
async function isBare(directory: string): Promise<boolean> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    const expected = entries.every(entry =>
      entry.isDirectory() ? entry.name === 'kept' : entry.name === 'record.json.new' && entry.isFile(),
    );
    return expected && (await readdir(join(directory, 'kept'))).length === 0;
  } catch (error) {
    unlessGone(error);
    return false;
  }
}

function unlessGone(error: unknown): void {
  if (!isGone(error)) throw error;
}

function read(path: string, sandboxId: string, key: Uint8Array): Omit<FoundRecord, 'sandboxId'> {
  const text = readIfThere(path);
  if (text === undefined) return { record: undefined };
  try {
    // Only `write` writes them.
    const stored = JSON.parse(text) as SandboxRecord & { network: string };
    if (stored.sandboxId !== sandboxId || typeof stored.executionId !== 'string')
      throw new Error('it is of another sandbox');
    return { record: { ...stored, network: opened(stored.network, key, sandboxId) } };
  } catch (error) {
    return { record: undefined, damaged: messageOf(error) };
  }
}

/**
 * After a restart of the host the key is gone: nothing may leave until whoever resumes the sandbox says what may. The
 * same holds if opening fails for another reason, which says nothing about the sandbox itself.
 */
function opened(sealed: string, key: Uint8Array, sandboxId: string): SandboxNetwork {
  let text: string;
  try {
    text = decrypt(key, sealed, sandboxId);
  } catch {
    return { internetAccess: false }; // sealed by another key
  }
  return JSON.parse(text) as SandboxNetwork;
}
