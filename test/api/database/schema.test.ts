import { expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { openStore } from '../../../src/api/database/database.ts';
import type { Db } from '../../../src/api/database/db.ts';
import { onEachDatabase } from '../databases.ts';

// Everything that the migrations make, as the databases describe it: a missing index or trigger breaks no rule, and
// only operators notice. SCHEMA_WRITE=1 writes the present state: read the difference, then commit it.

const byKind = {
  SQLite: sql<{ line: string }>`
    select type || ' ' || name || ': ' || coalesce(sql, 'made by itself') as line from sqlite_master order by line`,
  PostgreSQL: sql<{ line: string }>`
    select line from (select 'column ' || table_name || '.' || column_name || ': ' || data_type ||
      case is_nullable when 'NO' then ' not null' else '' end || coalesce(' default ' || column_default, '') as line
      from information_schema.columns where table_schema = current_schema()
    union all select 'index ' || indexname || ': ' || indexdef from pg_indexes where schemaname = current_schema()
    union all select 'constraint ' || conrelid::regclass || '.' || conname || ': ' || pg_get_constraintdef(oid)
      from pg_constraint where connamespace = current_schema()::regnamespace and contype in ('c', 'f', 'p', 'u')
    union all select 'trigger ' || tgname || ': ' || pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
    union all select 'function ' || proname || ': ' || prosrc
      from pg_proc where pronamespace = current_schema()::regnamespace
    ) as lines order by line collate "C"`,
};

const linesOf = async (db: Db, kind: keyof typeof byKind) =>
  (await byKind[kind].execute(db)).rows.map(({ line }) => line.replaceAll(/\s+/g, ' '));

onEachDatabase(database => {
  test('a new database has the schema that is written down', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'atoll-schema-'));
    try {
      const location = (await database.emptyLocation()) ?? { kind: 'sqlite', path: join(directory, 'db.sqlite') };
      await using store = await openStore(location);
      const text = `${(await linesOf(store.db, database.name)).join('\n')}\n`;
      const kept = join(import.meta.dir, 'schema', `${database.name.toLowerCase()}.txt`);
      if (process.env['SCHEMA_WRITE'] === '1') writeFileSync(kept, text);
      expect(text).toBe(readFileSync(kept, 'utf8'));
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
