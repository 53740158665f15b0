import { expect, test } from 'bun:test';
import { sql } from 'kysely';
import { connectStore, openStore } from '../../../src/api/database/database.ts';
import { migrate, migrations, schemaVersion } from '../../../src/api/database/migrate.ts';
import { tablesInOrder } from '../../../src/api/database/table-order.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform } from '../platform.ts';

const names = Object.keys(migrations).toSorted();
const newest = names.at(-1) ?? '';

onEachDatabase(database => {
  test('a schema is brought up to date once, and a migration that fails leaves nothing of it', async () => {
    await using platform = await Platform.start({ database });
    expect(await schemaVersion(platform.store.db)).toBe(newest);
    const tables = await tablesInOrder(platform.store.db, platform.store.kind);
    expect(tables.length).toBeGreaterThan(20);
    await platform.restart();
    expect(await tablesInOrder(platform.store.db, platform.store.kind)).toEqual(tables);
  });

  test('a database with a table in the way is left as it was', async () => {
    await using platform = await Platform.start({ database });
    const { location } = platform;
    const { db } = platform.store;
    for (const table of (await tablesInOrder(db, platform.store.kind)).toReversed())
      await db.schema.dropTable(table).execute();
    if (platform.store.kind === 'postgres')
      await sql`drop function tell_credential_change, tell_sandbox_change`.execute(db);
    await sql`delete from kysely_migration`.execute(db);
    await sql`create table webhooks (mine integer)`.execute(db);
    await using beside = connectStore(location);
    await expect(migrate(beside.db)).rejects.toThrow('The database cannot be brought up to date');
    expect(await tablesInOrder(beside.db, beside.kind)).toEqual(['webhooks']);
    expect(await schemaVersion(beside.db)).toBe(null);
    await db.schema.dropTable('webhooks').execute();
    await migrate(beside.db);
    expect(await schemaVersion(beside.db)).toBe(newest);
  });

  for (const { of, name, says } of [
    { of: 'a newer version', name: '9999-future', says: /newer version.*9999-future/ },
    { of: 'a development version', name: '0001-first', says: /development version.*0001-first.*empty data directory/ },
  ]) {
    test(`a schema of ${of} is refused with its name, and left as it is`, async () => {
      await using platform = await Platform.start({ database });
      const { db } = platform.store;
      await sql`insert into kysely_migration (name, timestamp) values (${name}, 'x')`.execute(db);
      await expect(openStore(platform.location)).rejects.toThrow(says);
      const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
      expect(rows.map(row => row.name)).toEqual([...names, name].toSorted());
    });
  }
});
