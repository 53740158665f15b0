import { createReadStream, readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { systemClock } from '../../base/clock.ts';
import { newUuid } from '../../base/id.ts';
import { connectStore } from '../database/database.ts';
import type { StoreLocation } from '../database/db.ts';
import { dumpStore } from '../database/dump.ts';
import { putInstallation } from '../database/installation.ts';
import { loadDump } from '../database/load-dump.ts';
import { recordLocalChange } from '../event/rules/audit.ts';
import { databaseOf, seedDigestOf } from '../installation/check.ts';
import { sqlitePathOf } from '../installation/data-directory.ts';
import { writeFacts } from '../installation/facts.ts';
import type { Place } from '../installation/place.ts';
import type { Manifest } from './manifest.ts';
import { layerFile } from './places.ts';
import { forgetUnkept } from './restored-state.ts';
import { volumesIn } from './volumes.ts';

const stateFile = 'state.jsonl';
const linesAtOnce = 500;

/** What a backup's state refers to: the layers of its templates, and its paused sandboxes. */
type WrittenState = { layers: Set<string>; paused: { sandboxId: string; executionId: string }[] };

/** Writes the state into the backup. `scratch` is the path of a file for a copy of the database. */
export async function writeState(location: StoreLocation, staging: string, scratch: string): Promise<WrittenState> {
  const layers = new Set<string>();
  const paused: WrittenState['paused'] = [];
  const file = await open(join(staging, stateFile), 'wx', 0o600);
  try {
    let lines: string[] = [];
    const flush = async () => {
      // Appends everything: a plain write stops short on a full disk, without an error.
      await file.appendFile(lines.map(line => `${line}\n`).join(''));
      lines = [];
    };
    for await (const { line, table, row } of dumpStore(location, scratch)) {
      if (table === 'builds' && row?.['status'] === 'ready')
        for (const digest of JSON.parse(String(row['layers_json'])) as string[]) layers.add(layerFile(digest));
      if (table === 'sandboxes' && row?.['state'] === 'paused')
        paused.push({ sandboxId: String(row['sandbox_id']), executionId: String(row['execution_id']) });
      if (lines.push(line) >= linesAtOnce) await flush();
    }
    await flush();
  } finally {
    await file.close();
  }
  return { layers, paused };
}

/**
 * Records in the audit log that a backup was made, because it holds every secret of the installation. Leaves the schema
 * as it is: an older version may be running on it, which a backup before an upgrade must not disturb.
 */
export async function recordBackup(location: StoreLocation, account: string): Promise<void> {
  await using store = connectStore(location);
  await recordLocalChange(
    store.db,
    { operation: 'cli.backup', account, atUs: systemClock()(), teamId: null },
    { target: 'installation:this' },
  );
}

/**
 * Fills an empty database with the state of an unpacked backup, and gives the restored installation an ID of its own.
 * `made` is the data directory before it gets its name.
 */
export async function restoreState(
  { database }: Place,
  made: string,
  unpacked: string,
  { manifest, account, signal }: { manifest: Manifest; account: string; signal?: AbortSignal | undefined },
): Promise<void> {
  const location: StoreLocation = database.kind === 'sqlite' ? { ...database, path: sqlitePathOf(made) } : database;
  const lines = createInterface({
    input: createReadStream(join(unpacked, stateFile)),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  const atUs = systemClock()();
  await loadDump(location, untilAborted(lines, signal), async db => {
    const nodeId = readFileSync(join(made, 'node-id'), 'utf8').trim();
    await forgetUnkept(db, { nodeId, sandboxes: manifest.sandboxes, volumes: volumesIn(made) }, atUs);
    // Both copies may run: with an ID of its own, neither takes the other's database for its own.
    const seed = Buffer.from(readFileSync(join(made, 'seed'), 'utf8').trim(), 'hex');
    const known = { installationId: newUuid(), seedDigest: seedDigestOf(seed), generation: 0 };
    await putInstallation(db, { ...known, acceptedAtUs: null });
    writeFacts(made, { ...known, nodeId, database: databaseOf(database) });
    await recordLocalChange(
      db,
      { operation: 'cli.restore', account, atUs, teamId: null },
      { target: 'installation:this', after: { backupOf: manifest.createdAt } },
    );
  });
}

async function* untilAborted(lines: AsyncIterable<string>, signal: AbortSignal | undefined): AsyncGenerator<string> {
  for await (const line of lines) {
    signal?.throwIfAborted();
    yield line;
  }
}
