import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { readIfThere } from '../identity.ts';

/** What a data directory knows of itself and of its database, in `installation.json`. */
export type InstallationNote = {
  installationId: string;
  nodeId: string;
  /** Says which seed belongs to it, and nothing of the seed. */
  seedDigest: string;
  /** Where its state is: SQLite beside this file, or a PostgreSQL database by its place. */
  database: 'sqlite' | `postgres ${string}`;
  /** The last one of the database that is on the disk there: never ahead of it. */
  generation: number;
};

export const noteFile = (dataDir: string): string => join(dataDir, 'installation.json');

/** Undefined for a directory without. Throws `internal` for one that can't be read. */
export function readNote(dataDir: string): InstallationNote | undefined {
  const text = readIfThere(noteFile(dataDir));
  if (text === undefined) return undefined;
  try {
    const note = JSON.parse(text) as InstallationNote;
    if (typeof note.installationId === 'string' && typeof note.generation === 'number' && typeof note.database === 'string') return note;
  } catch {
    // The same is wrong with it as with one that lacks something.
  }
  throw new AtollError('internal', `${noteFile(dataDir)} is damaged: it says whose directory this is. Put it back from a backup, or delete it: the next start makes it anew if directory and database belong together.`);
}

/** A crash leaves the old one or the new one. */
export function writeNote(dataDir: string, note: InstallationNote): void {
  const temporary = `${noteFile(dataDir)}.new`;
  const file = openSync(temporary, 'w', 0o600);
  try {
    writeSync(file, `${JSON.stringify(note, null, 2)}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, noteFile(dataDir));
}
