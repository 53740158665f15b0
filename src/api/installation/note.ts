import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { readIfThere, writeWhole } from '../../base/small-file.ts';

/** Facts of a data directory about itself and its database, in `installation.json`. */
export type InstallationNote = {
  installationId: string;
  nodeId: string;
  /** Says which seed belongs to it, and nothing of the seed. */
  seedDigest: string;
  /** Place of its state: SQLite beside this file, or a PostgreSQL database by name. */
  database: 'sqlite' | `postgres ${string}`;
  /** The database's last generation that reached this disk: never ahead of the database. */
  generation: number;
};

/** Path of the note in a data directory. */
export const noteFile = (dataDir: string): string => join(dataDir, 'installation.json');

/** Undefined for a directory without. Throws `internal` for one that can't be read. */
export function readNote(dataDir: string): InstallationNote | undefined {
  const text = readIfThere(noteFile(dataDir));
  if (text === undefined) return undefined;
  try {
    const note = JSON.parse(text) as InstallationNote;
    if (
      typeof note.installationId === 'string' &&
      typeof note.generation === 'number' &&
      typeof note.database === 'string'
    )
      return note;
  } catch {
    // The same is wrong with it as with one that lacks something.
  }
  throw new AtollError(
    'internal',
    `${noteFile(dataDir)} is damaged: it says whose directory this is. Put it back from a backup, or delete it: ` +
      'the next start makes it anew if directory and database belong together.',
  );
}

/** Writes the note. A crash leaves the old one or the new one. */
export function writeNote(dataDir: string, note: InstallationNote): void {
  writeWhole(noteFile(dataDir), `${JSON.stringify(note, null, 2)}\n`);
}
