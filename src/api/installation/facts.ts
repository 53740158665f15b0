import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { readIfThere, writeWhole } from '../../base/small-file.ts';
import { parseJson } from '../../base/json-text.ts';

/** Facts of a data directory about itself and its database, in `installation.json`. */
export type InstallationFacts = {
  installationId: string;
  nodeId: string;
  /** Identifies the seed that belongs to it, without revealing the seed. */
  seedDigest: string;
  /** Place of its state: SQLite beside this file, or a PostgreSQL database by name. */
  database: 'sqlite' | `postgres ${string}`;
  /** The database's last generation that reached this disk: never ahead of the database. */
  generation: number;
};

/** Path of the facts in a data directory. */
export const factsFile = (dataDir: string): string => join(dataDir, 'installation.json');

/** Undefined for a directory without facts. Throws `internal` for facts that can't be read. */
export function readFacts(dataDir: string): InstallationFacts | undefined {
  const text = readIfThere(factsFile(dataDir));
  if (text === undefined) return undefined;
  const facts = parseJson(text) as InstallationFacts | null | undefined;
  if (
    typeof facts?.installationId === 'string' &&
    typeof facts.generation === 'number' &&
    typeof facts.database === 'string'
  )
    return facts;
  throw new AtollError(
    'internal',
    `${factsFile(dataDir)} is damaged: it says whose directory this is. Put it back from a backup, or delete it: ` +
      'the next start makes it anew if directory and database belong together.',
  );
}

/** Writes the facts. A crash leaves the old ones or the new ones. */
export function writeFacts(dataDir: string, facts: InstallationFacts): void {
  writeWhole(factsFile(dataDir), `${JSON.stringify(facts, null, 2)}\n`);
}
