import { expect, test } from 'bun:test';
import { createReadStream, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { recordBackup } from '../../../src/api/backup/state.ts';
import { connectStore } from '../../../src/api/database/database.ts';
import { dumpStore } from '../../../src/api/database/dump.ts';
import { findInstallation } from '../../../src/api/database/installation.ts';
import { loadDump } from '../../../src/api/database/load-dump.ts';
import { migrate, migrations, schemaVersion } from '../../../src/api/database/migrate.ts';
import { withLocalAccounts } from '../../../src/api/local/accounts.ts';
import { buildCounts, stateCounts } from '../../../src/api/sandbox/store/counts.ts';
import { onEachDatabase } from '../databases.ts';

// State written by earlier versions, with every kind of row that an API makes: a team's keys, a user, templates and a
// snapshot, sandboxes that ran and were paused, a volume, a secret, a webhook with deliveries, the audit log. Each file
// is a dump of a schema (`write-released.ts`), made by the code of its time, and is never changed. A new migration adds
// a dump of the schema before it.
const folder = join(import.meta.dir, 'released');
const released = readdirSync(folder).map(name => basename(name, '.jsonl'));
const linesOf = (schema: string) => createInterface({ input: createReadStream(join(folder, `${schema}.jsonl`)) });

test('there is state of released schemas, by name', () => {
  expect(released.length).toBeGreaterThan(0);
  for (const schema of released) expect(Object.keys(migrations)).toContain(schema);
  // The previous schema is there: its code wrote the dump before the newest migration was added.
  expect(released).toContain(Object.keys(migrations).toSorted().at(-2) ?? '');
});

onEachDatabase(database => {
  test('beside a platform of an earlier version, a backup is recorded and keys are refused; its schema stays', async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'atoll-released-'));
    try {
      const location =
        (await database.emptyLocation()) ?? ({ kind: 'sqlite', path: join(scratch, 'state.sqlite') } as const);
      const [before = ''] = Object.keys(migrations).toSorted();
      {
        await using store = connectStore(location);
        await migrate(store.db, before);
      }
      await recordBackup(location, 'root');
      await expect(withLocalAccounts(location, 'root', async () => {})).rejects.toThrow(
        /earlier version.*it lacks 0002/,
      );
      await using store = connectStore(location);
      expect(await schemaVersion(store.db)).toBe(before);
    } finally {
      rmSync(scratch, { recursive: true });
    }
  });

  for (const schema of released) {
    test(`state of ${schema} is taken over, and no row is lost`, async () => {
      const scratch = mkdtempSync(join(tmpdir(), 'atoll-released-'));
      try {
        const location =
          (await database.emptyLocation()) ?? ({ kind: 'sqlite', path: join(scratch, 'state.sqlite') } as const);
        await loadDump(location, linesOf(schema), async () => {});
        await using store = connectStore(location);
        expect(await schemaVersion(store.db)).toBe(Object.keys(migrations).toSorted().at(-1) ?? '');
        expect(await findInstallation(store.db)).toMatchObject({ installationId: expect.any(String) });
        expect(Object.fromEntries(await stateCounts(store.db))).toEqual({ running: 1, paused: 1 });
        expect(await buildCounts(store.db)).toEqual(new Map());
        expect(await rowsOfDump(location, scratch)).toEqual(await rowsOfFile(schema));
      } finally {
        rmSync(scratch, { recursive: true });
      }
    });
  }
});

/** How many rows each table has, in the lines of a dump. */
function countRows(lines: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  let table = '';
  for (const line of lines) {
    const value = JSON.parse(line) as unknown;
    if (Array.isArray(value)) counts[table] = (counts[table] ?? 0) + 1;
    else table = (value as { table?: string }).table ?? table;
  }
  return counts;
}

async function rowsOfDump(location: Parameters<typeof dumpStore>[0], scratch: string): Promise<Record<string, number>> {
  const lines: string[] = [];
  for await (const { line } of dumpStore(location, join(scratch, 'copy.sqlite'))) lines.push(line);
  return countRows(lines);
}

async function rowsOfFile(schema: string): Promise<Record<string, number>> {
  const lines: string[] = [];
  for await (const line of linesOf(schema)) lines.push(line);
  return countRows(lines);
}
