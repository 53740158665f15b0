import { expect, setDefaultTimeout } from 'bun:test';
import { sql } from 'kysely';
import { openShared } from '../../../src/api/installation/control.ts';
import type { Db } from '../../../src/api/database/db.ts';
import { connectToPrimary, type Timeline } from '../../../src/api/database/postgres/primary.ts';
import { ChangeWatch } from '../../../src/api/database/postgres/watch.ts';
import { openStore } from '../../../src/api/database/database.ts';
import { tablesInOrder } from '../../../src/api/database/table-order.ts';
import { startReplica } from '../../../src/api/replica/rules/replica.ts';
import { correctClock, readClock } from '../../../src/api/database/clock.ts';
import { findSandbox } from '../../../src/api/sandbox/store/read.ts';
import { testUnless } from '../../support/skip.ts';
import { Platform, until } from '../platform.ts';
import { SharedDatabases, postgresPrograms } from '../postgres.ts';

// Control processes on one database: which may not start beside the others, and what the next release may do to the
// schema while this one runs.

setDefaultTimeout(120_000);
const programs = postgresPrograms();
const onPostgres = testUnless(
  programs === null ? 'PostgreSQL is not installed (Debian: apt-get install postgresql)' : undefined,
);

onPostgres(
  'a control process with another seed, a wrong clock or an earlier program refuses to start and says so',
  async () => {
    await using cluster = await SharedDatabases.open(programs ?? '');
    const location = await cluster.newDatabase();
    const seed = new Uint8Array(32).fill(1);
    await using store = await openShared(location, seed);
    const seen = async () =>
      (await sql<{ rows: string }>`select string_agg(i::text, ',') as rows from installation i`.execute(store.db))
        .rows[0];
    const before = await seen();
    await expect(openShared(location, new Uint8Array(32).fill(2))).rejects.toMatchObject({
      code: 'precondition',
      message: expect.stringContaining('another seed'),
    });
    for (const [differenceMs, says] of [
      [3_600_000, 'ahead of'],
      [-3_600_000, 'behind'],
    ] as const)
      await expect(openShared(location, seed, () => Date.now() + differenceMs)).rejects.toMatchObject({
        code: 'precondition',
        message: expect.stringMatching(new RegExp(`36\\d\\d s ${says} the database's, and at most 60 s`)),
      });
    await using _ = await openShared(location, seed, () => Date.now() + 30_000);
    await sql`insert into kysely_migration (name, timestamp) values ('9999-next', 'x')`.execute(store.db);
    await expect(openShared(location, seed)).rejects.toMatchObject({
      code: 'precondition',
      message: expect.stringMatching(/newer version.*9999-next/),
    });
    expect(await seen()).toEqual(before);
  },
);

onPostgres('a correction of the clock of the database holds while somebody works by it, and no longer', async () => {
  await using cluster = await SharedDatabases.open(programs ?? '');
  const location = await cluster.newStore();
  const seed = new Uint8Array(32).fill(1);
  await using store = await openShared(location, seed);
  const { db } = store;
  const hourUs = 3_600_000_000;
  const leaseSeconds = 0.9;
  const begin = (nowMs = Date.now) => openShared(location, seed, nowMs, leaseSeconds);
  const correct = async (correctionUs: number) =>
    expect(await correctClock(db, await readClock(db), correctionUs)).toBe(true);
  // The database is an hour ahead, and all others notice.
  await correct(-hourUs);
  await (await begin(() => Date.now() - 3_600_000))[Symbol.asyncDispose]();
  expect((await readClock(db)).correctionUs).toBe(-hourUs);
  // It is corrected while somebody works who will report that.
  await using replica = new AsyncDisposableStack();
  const clock = () => Date.now() * 1000 - hourUs;
  const { beat, leave } = await startReplica({ db, clock }, { place: 'one' });
  const beating = setInterval(() => void beat(), 200);
  replica.defer(() => clearInterval(beating));
  await expect(begin()).rejects.toMatchObject({ code: 'precondition', message: expect.stringContaining('ahead of') });
  expect((await readClock(db)).correctionUs).toBe(-hourUs);
  // Nobody who could is there any more.
  clearInterval(beating);
  await leave();
  await (await begin())[Symbol.asyncDispose]();
  expect(await readClock(db)).toMatchObject({ correctionUs: 0, revision: 2 });
  expect(await correctClock(db, { nowUs: 0, correctionUs: 0, revision: 1 }, 5)).toBe(false);
});

onPostgres(
  'a query of every create is planned once for a connection, and goes on with a column that is added',
  async () => {
    await using cluster = await SharedDatabases.open(programs ?? '');
    await using store = await openStore(await cluster.newStore());
    await store.db.connection().execute(async db => {
      const kept = async () =>
        (await sql<{ statement: string }>`select statement from pg_prepared_statements`.execute(db)).rows;
      for (const _ of [1, 2]) expect(await findSandbox(db, 'team', 'none')).toBe(null);
      expect(await kept()).toEqual([{ statement: expect.stringContaining('from "sandboxes"') }]);
      await sql`alter table sandboxes add column of_the_next text not null default 'next'`.execute(db);
      expect(await findSandbox(db, 'team', 'none')).toBe(null);
      expect(await kept()).toHaveLength(1);
    });
  },
);

onPostgres('this release works on while the next one has expanded the schema', async () => {
  await using cluster = await SharedDatabases.open(programs ?? '');
  await using platform = await Platform.start({ database: { name: 'PostgreSQL', location: () => cluster.newStore() } });
  const { db } = platform.store;
  const running = await platform.createSandbox();
  // Connections keep the plans of earlier statements.
  for (let times = 0; times < 3; times++) {
    const { sandboxID } = await platform.createSandbox({ metadata: { a: 'b' } });
    expect((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
  }
  const tables = await tablesInOrder(db, 'postgres');
  expect(tables.length).toBeGreaterThan(20);
  for (const table of tables)
    await sql`alter table ${sql.table(table)} add column of_the_next text not null default 'next'`.execute(db);
  await sql`create table things_of_the_next (thing text)`.execute(db);
  await sql`insert into kysely_migration (name, timestamp) values ('9999-next', 'x')`.execute(db);

  const { sandboxID } = await platform.createSandbox({ metadata: { a: 'b' } });
  expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`, {})).status).toBe(204);
  expect((await platform.call('POST', `/sandboxes/${sandboxID}/connect`, { timeout: 60 })).status).toBe(201);
  expect((await platform.call('POST', `/sandboxes/${sandboxID}/snapshots`, {})).status).toBe(201);
  expect((await platform.call('POST', '/secrets', { name: 'a', value: 'b' })).status).toBe(201);
  expect((await platform.call('GET', '/v2/sandboxes')).body).toHaveLength(2);
  for (const id of [running.sandboxID, sandboxID])
    expect((await platform.call('DELETE', `/sandboxes/${id}`)).status).toBe(204);
  expect(platform.logged).toEqual([]);
});

onPostgres(
  'who hears of changes keeps nothing from another history of the database, and hears of no server that was left',
  async () => {
    await using cluster = await SharedDatabases.open(programs ?? '');
    const location = await cluster.newDatabase();
    await using store = await openStore(location);
    const { url } = location.kind === 'postgres' ? location : { url: '' };
    const { timeline: present } = await connectToPrimary(url, {}).then(async asked => {
      await asked[Symbol.asyncDispose]();
      return asked;
    });
    // The store's own connection is subtracted below.
    await until(async () => (await watchers(store.db)) === 0);
    let read: Timeline | null = null;
    const watch = new ChangeWatch(url, () => read);
    let looks = 0;
    watch.onSandboxes(changed => (looks += changed === null ? 1 : 0));
    const isQuiet = () => !watch.changedElsewhere() && !watch.changedElsewhere();
    try {
      // Before anything was read, its history is unknown.
      await until(() => looks === 1);
      expect(isQuiet()).toBe(false);
      read = present;
      expect([watch.changedElsewhere(), watch.changedElsewhere(), looks]).toEqual([true, false, 2]);
      // The read state is that of a server older than this promoted one: nobody reports changes there.
      read = { ...present, timeline: present.timeline - 1 };
      for (let i = 0; i < 3; i++) expect(watch.changedElsewhere()).toBe(true);
      read = present;
      expect([watch.changedElsewhere(), watch.changedElsewhere(), looks]).toEqual([true, false, 4]);
      // Another one was promoted.
      read = { ...present, timeline: present.timeline + 1 };
      for (let i = 0; i < 3; i++) expect(watch.changedElsewhere()).toBe(true);
      // Whatever is read next, nobody listens to the abandoned server any more.
      const promoted = read;
      read = present;
      for (let i = 0; i < 3; i++) expect(watch.changedElsewhere()).toBe(true);
      read = promoted;
      await until(async () => (await watchers(store.db)) === 0);
      for (let i = 0; i < 3; i++) expect(watch.changedElsewhere()).toBe(true);
      read = present;
      await until(isQuiet);
      expect(await watchers(store.db)).toBe(1);
    } finally {
      await watch.close();
    }
  },
);

/** Connections that hear of changes, except the store's own. */
async function watchers(db: Db): Promise<number> {
  const { rows } = await sql<{ count: string }>`
    select count(*) as count from pg_stat_activity where application_name = 'atoll watch' and datname = current_database()
  `.execute(db);
  return Number(rows[0]?.count) - 1;
}
