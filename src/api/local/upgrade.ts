import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ownName, removeLeftovers } from '../../base/process/leftovers.ts';
import { connectStore } from '../database/database.ts';
import type { StoreLocation } from '../database/db.ts';
import { dumpStore } from '../database/dump.ts';
import { loadDump } from '../database/load-dump.ts';
import { migrations, refuseUnknown, schemaVersion } from '../database/migrate.ts';
import { buildCounts, stateCounts } from '../sandbox/store/counts.ts';

/** What a start of this version would do to an installation. */
type UpgradePlan = {
  /** Present schema of the state, and the migrations that it lacks; none: nothing changes. */
  schema: string;
  pending: string[];
  /** Running and paused sandboxes in the state. */
  running: number;
  paused: number;
  /** Builds that wait or run; a restart ends them. */
  openBuilds: number;
};

/**
 * Finds out what this version would do, and changes nothing. Errors: `precondition` for a state that it can't take
 * over.
 */
export async function planUpgrade(database: StoreLocation): Promise<UpgradePlan> {
  await using store = connectStore(database);
  await refuseUnknown(store.db);
  const schema = (await schemaVersion(store.db)) ?? 'none';
  const names = Object.keys(migrations).toSorted();
  const [states, builds] = [await stateCounts(store.db), await buildCounts(store.db)];
  return {
    schema,
    pending: names.slice(names.indexOf(schema) + 1),
    running: states.get('running') ?? 0,
    paused: states.get('paused') ?? 0,
    openBuilds: [...builds.values()].reduce((sum, count) => sum + count, 0),
  };
}

/**
 * Migrates a copy of the state, so that a failing migration fails before the platform is stopped. `folder`: has room
 * for the copy; nothing is left there. Errors: `internal`.
 */
export async function tryMigrations(database: StoreLocation, folder: string, signal?: AbortSignal): Promise<void> {
  removeLeftovers(folder, 'upgrade');
  const scratch = mkdtempSync(join(folder, `${ownName('upgrade')}-`));
  try {
    const lines = async function* () {
      for await (const { line } of dumpStore(database, join(scratch, 'copy.sqlite'))) {
        signal?.throwIfAborted();
        yield line;
      }
    };
    await loadDump({ kind: 'sqlite', path: join(scratch, 'state.sqlite') }, lines(), async () => {});
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
