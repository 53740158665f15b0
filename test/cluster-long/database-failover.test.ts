import { expect, setDefaultTimeout, test } from 'bun:test';
import { sql } from 'kysely';
import { connectStore } from '../../src/api/database/database.ts';
import { hostsOf } from '../../src/api/database/postgres/hosts.ts';
import { reconcileNodes } from '../../src/api/sandbox/reconcilers/adoption.ts';
import { keepsUnknown } from '../../src/api/build/reconcilers/layers.ts';
import { noticeTimeline } from '../../src/api/database/timeline.ts';
import { testUnless } from '../support/skip.ts';
import { adminToken, call, Platform, until } from '../api/platform.ts';
import { postgresPrograms } from '../api/postgres.ts';
import { type PostgresPair, startPair } from '../api/postgres-pair.ts';

// A primary that dies and a standby that takes its place, both real: what was answered stays, and what the new one
// lacks is not considered dead.

setDefaultTimeout(180_000);
const programs = postgresPrograms();
const onPostgres = testUnless(
  programs === null ? 'PostgreSQL is not installed (Debian: apt-get install postgresql)' : undefined,
);

const platformOn = ({ location }: PostgresPair) =>
  Platform.start({
    database: { name: 'PostgreSQL', location: async () => location },
    limits: { requestsPerSecond: 0 },
  });
const isBack = async (platform: Platform) => (await platform.call('GET', '/health')).status === 200;
const idsOf = (rows: { sandboxId: string }[]) => rows.map(({ sandboxId }) => sandboxId).toSorted();
const listed = async (platform: Platform) =>
  ((await platform.call('GET', '/sandboxes')).body as { sandboxID: string }[]).map(({ sandboxID }) => sandboxID);
const orphansOf = async (platform: Platform) => {
  const admin = { 'x-admin-token': adminToken };
  const { body } = await call(platform.socketPath, 'GET', '/admin/orphans', undefined, admin);
  return (body as { sandboxes: { sandboxID: string; reason: string }[] }).sandboxes;
};
/** What the process's reconcilers do by themselves, without waiting for the next round. */
const adopt = async ({ api: { parts } }: Platform) => {
  const found = await noticeTimeline(parts.db, parts.clock());
  await reconcileNodes(parts);
  return found;
};

onPostgres('with a synchronous standby, nothing that was answered is missing after it took over', async () => {
  await using pair = await startPair(programs ?? '', { isSync: true });
  await using platform = await platformOn(pair);
  const made = new Set<string>();
  const ended = new Set<string>();
  const doubtful = new Set<string>();
  const statuses = new Set<number>();
  const storm = { over: false };
  const client = async () => {
    while (!storm.over) {
      const { status, body } = await platform.call('POST', '/v2/sandboxes', { templateID: 'base', timeout: 3600 });
      statuses.add(status);
      if (status !== 201) {
        await Bun.sleep(20);
        continue;
      }
      const { sandboxID } = body as { sandboxID: string };
      made.add(sandboxID);
      if (made.size % 3 === 0) continue;
      const killed = (await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status;
      statuses.add(killed);
      (killed === 204 ? ended : doubtful).add(sandboxID);
    }
  };
  const clients = Array.from({ length: 6 }, client);
  await until(() => made.size > 20, 60_000);
  await pair.first.stop('immediate');
  // A window for requests that find no database.
  await Bun.sleep(300);
  await pair.promote();
  const before = made.size;
  await until(() => made.size > before + 10, 60_000);
  storm.over = true;
  await Promise.all(clients);
  // The outcome of a change that was in progress is unknown.
  statuses.delete(500);
  expect([...statuses].toSorted()).toEqual([201, 204, 503]);
  await until(
    async () =>
      JSON.stringify((await listed(platform)).toSorted()) === JSON.stringify(idsOf(platform.node.executions())),
  );
  const there = new Set(await listed(platform));
  expect([...made].filter(id => !ended.has(id) && !doubtful.has(id) && !there.has(id))).toEqual([]);
  expect([...ended].filter(id => there.has(id))).toEqual([]);
  await adopt(platform);
  expect(await orphansOf(platform)).toEqual([]);
});

onPostgres(
  'what an asynchronous standby lacks when it takes over is kept for the operator, and nothing is killed',
  async () => {
    await using pair = await startPair(programs ?? '', { isSync: false });
    await using platform = await platformOn(pair);
    const known = await platform.createSandbox();
    const resumed = await platform.createSandbox();
    expect((await platform.call('POST', `/sandboxes/${resumed.sandboxID}/pause`, {})).status).toBe(204);
    expect(await adopt(platform)).toMatchObject({ isNew: false, isSuspect: false, timeline: { timeline: 1 } });
    await until(async () => {
      const at = connectStore({ kind: 'postgres', url: hostsOf(urlOf(pair))[0] ?? '' });
      await using _ = at;
      const { rows } = await sql<{ same: boolean }>`
      select coalesce(bool_and(replay_lsn = pg_current_wal_lsn()), false) as same from pg_stat_replication
    `.execute(at.db);
      return rows[0]?.same ?? false;
    });
    await pair.second.stop('fast');
    // The standby never hears of these.
    const lost = await platform.createSandbox();
    expect((await platform.call('POST', `/sandboxes/${resumed.sandboxID}/connect`, { timeout: 600 })).status).toBe(201);
    await pair.first.stop('immediate');
    await pair.second.start();
    await pair.promote();
    await until(() => isBack(platform), 60_000);

    expect(await adopt(platform)).toMatchObject({ isNew: true, isSuspect: true, timeline: { timeline: 2 } });
    await adopt(platform);
    const orphans = await orphansOf(platform);
    expect(orphans.map(({ sandboxID }) => sandboxID).toSorted()).toEqual(
      [lost.sandboxID, resumed.sandboxID].toSorted(),
    );
    for (const { reason } of orphans) expect(reason).toContain('went over to another server');
    expect(idsOf(platform.node.executions())).toEqual([known.sandboxID]);
    // Its row dates from before the resume, and is not mistaken for that of a sandbox that is gone.
    expect((await platform.call('GET', `/sandboxes/${resumed.sandboxID}`)).body).toMatchObject({ state: 'paused' });
    expect(await keepsUnknown(platform.api.parts)).toBe(true);
    const admin = { 'x-admin-token': adminToken };
    for (const id of [lost.sandboxID, resumed.sandboxID]) {
      const path = `/admin/orphans/sandboxes/${id}/adopt`;
      const body = { teamID: platform.team.teamId };
      expect((await call(platform.socketPath, 'POST', path, body, admin)).status).toBe(204);
      expect((await platform.call('POST', `/sandboxes/${id}/connect`, { timeout: 600 })).status).toBe(201);
    }
    expect(idsOf(platform.node.executions())).toEqual([known.sandboxID, lost.sandboxID, resumed.sandboxID].toSorted());
  },
);

const urlOf = ({ location }: PostgresPair) => (location.kind === 'postgres' ? location.url : '');

onPostgres(
  'a primary that comes back after another was promoted is not taken, and a standby alone refuses',
  async () => {
    await using pair = await startPair(programs ?? '', { isSync: false });
    const [first = '', second = ''] = hostsOf(urlOf(pair));
    {
      await using store = connectStore({ kind: 'postgres', url: second });
      await expect(sql`select 1`.execute(store.db)).rejects.toMatchObject({
        code: 'unavailable',
        cause: { message: expect.stringContaining('it is a standby') },
      });
    }
    await using store = connectStore(pair.location);
    const where = async () =>
      (
        await sql<{
          folder: string;
        }>`select setting as folder from pg_settings where name = 'unix_socket_directories'`.execute(store.db)
      ).rows[0]?.folder;
    expect(await where()).toBe(pair.first.folder);
    await pair.first.stop('immediate');
    await expect(where()).rejects.toMatchObject({ code: 'unavailable' });
    await pair.promote();
    await until(() =>
      where().then(
        folder => folder === pair.second.folder,
        () => false,
      ),
    );
    // The old one returns unchanged, and says that it is the primary.
    await pair.first.start();
    await pair.second.stop('immediate');
    await expect(where()).rejects.toMatchObject({ cause: { message: expect.stringContaining('older timeline') } });
    await pair.second.start();
    await until(() =>
      where().then(
        folder => folder === pair.second.folder,
        () => false,
      ),
    );
    // A new process takes the newer of the two.
    await using other = connectStore(pair.location);
    const { rows } = await sql<{
      is: boolean;
    }>`select true as is from pg_settings where setting = ${pair.second.folder}`.execute(other.db);
    expect(rows).toHaveLength(1);
    expect(first).not.toBe(second);
  },
);

test('a URL with several servers is read as libpq reads it', () => {
  expect(hostsOf('postgres://a:b@h/db')).toEqual(['postgres://a:b@h/db']);
  expect(hostsOf('postgres://a:b@h1:1,h2,[::1]:3/db?sslmode=require')).toEqual([
    'postgres://a:b@h1:1/db?sslmode=require',
    'postgres://a:b@h2/db?sslmode=require',
    'postgres://a:b@[::1]:3/db?sslmode=require',
  ]);
  expect(hostsOf('postgresql://a@/db?host=%2Fone,%2Ftwo&port=1,2')).toEqual([
    'postgresql://a@/db?host=%2Fone&port=1',
    'postgresql://a@/db?host=%2Ftwo&port=2',
  ]);
  expect(hostsOf('postgres://a@/db?host=one,two&port=7').map(url => url.split('?')[1])).toEqual([
    'host=one&port=7',
    'host=two&port=7',
  ]);
  for (const wrong of [
    'mysql://a',
    'postgres://a@/db?host=x,y&port=1,2,3',
    `postgres://${'h,'.repeat(8)}h/db`,
    'postgres://,/db',
  ])
    expect(() => hostsOf(wrong)).toThrow('ATOLL_DATABASE_URL');
});
