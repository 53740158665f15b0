import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SQL } from 'bun';
import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
import { PostgresCluster, postgresPrograms, withoutPostgres } from '../api/postgres.ts';
import { type Faults, workThrough } from '../cluster/support/clients.ts';
import { type Clocks, startClocks } from '../cluster/support/clocks.ts';
import {
  allReady,
  type Cluster,
  connectionTo,
  layersEverywhere,
  startCluster,
  until,
} from '../cluster/support/cluster.ts';
import { fillDisk, mountDisk } from '../cluster/support/disk.ts';
import { atRest } from '../cluster/support/invariants.ts';
import { run } from '../cluster/support/network.ts';
import { type Proxy, startProxy } from '../cluster/support/proxy.ts';
import { type S3Server, startS3, withoutS3 } from '../support/s3-server.ts';
import { testUnless } from '../support/skip.ts';

// Things that are not away but wrong: a database and a store behind bad lines, clocks, full disks, machines that stand
// still. With the clients of faults.test.ts. FAULTS sets how many, FAULT_SEED which, FAULT_KINDS (a pattern) of which
// kind.

setDefaultTimeout(38 * 60_000);
const programs = postgresPrograms();
const skipped = withoutPostgres() ?? withoutS3();
const clusterTest = testUnless(skipped);
const seed = Number(process.env['FAULT_SEED'] ?? Date.now() % 1_000_000);
const kinds = new RegExp(process.env['FAULT_KINDS'] ?? '');
const size = { controls: 3, nodes: 2 };
const processes = ['control0', 'control1', 'control2', 'node0', 'node1', 'database'];
const hourSeconds = 3600;
const lifeMs = 25_000;
/** Less than the error of any of these clocks, and more than the delay of a busy machine. */
const lateMsMax = 60_000;
/** The time in which the database's clock runs a second too fast, and how long sandboxes live by it. */
const driftMs = 20_000;
const driftLifeMs = 95_000;

/** Sizes of the disks for the database's tables and log; and what is left of a full one. */
const tablesMiB = 512;
const logMiB = 2048;
const leftBytes = 128 << 10;
/** New log files that are requested while the log's disk is full. */
const logFilesMax = 20;

let cluster: Cluster;
let clocks: Clocks;
let tables: string;
let postgres: PostgresCluster;
let s3: S3Server;
const lines = {} as { database: Proxy; store: Proxy };
const made = new AsyncDisposableStack();

beforeAll(async () => {
  if (skipped !== undefined || !programs) return;
  tables = mkdtempSync(join(tmpdir(), 'atoll-tables-'));
  made.defer(() => rmSync(tables, { recursive: true }));
  made.use(await mountDisk(tablesDisk(), tablesMiB));
  made.use(await mountDisk(logDisk(), logMiB));
  chmodSync(tables, 0o755);
  await run('chown', 'postgres:postgres', logDisk());
  clocks = made.use(await startClocks(processes));
  postgres = made.use(await PostgresCluster.start(programs, { logFolder: logDisk(), enter: clocks.enter('database') }));
  const location = await postgres.newDatabase();
  const direct = location.kind === 'postgres' ? location.url : '';
  await moveTables(direct);
  lines.database = made.use(await startProxy({ path: postgres.socketPath }));
  const url = `postgres://atoll@127.0.0.1:${lines.database.port}/${databaseOf(direct)}`;
  const settings = { ATOLL_ISOLATION_SECONDS: '5', ATOLL_DISK_RESERVE_MIB: '400' };
  const store = async (hostname: string) => {
    s3 = made.use(await startS3(hostname));
    lines.store = made.use(await startProxy({ host: hostname, port: Number(new URL(s3.endpoint).port) }, hostname));
    return {
      ATOLL_STORE: `s3://${s3.bucket}/clusters/one`,
      ATOLL_STORE_ENDPOINT: `http://${hostname}:${lines.store.port}`,
      ATOLL_STORE_KEY_ID: s3.keyId,
      ATOLL_STORE_SECRET: s3.secret,
    };
  };
  const own = { url, present: () => direct };
  cluster = await startCluster(programs, { ...size, enter: clocks.enter, nodeDiskMiB: 16_384 }, settings, store, own);
}, 600_000);
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await made.disposeAsync();
});

/** Moves the tables of a database that nobody uses yet to a disk of their own. */
async function moveTables(url: string): Promise<void> {
  const place = join(tablesDisk(), 'postgres');
  mkdirSync(place);
  for (const folder of [tables, tablesDisk()]) chmodSync(folder, 0o755);
  await run('chown', 'postgres:postgres', place);
  const name = databaseOf(url);
  await using sql = new SQL(url.replace(`/${name}?`, '/postgres?'), { max: 1 });
  await sql.unsafe(`create tablespace small location '${place}'`);
  await sql.unsafe(`alter database ${name} set tablespace small`);
}

const databaseOf = (url: string) => /\/(\w+)\?/.exec(url)?.[1] ?? '';

/** Keeps a condition for a while. */
async function during(ms: number, begin: () => void, end: () => void): Promise<void> {
  begin();
  // A window: clients work meanwhile.
  await Bun.sleep(ms);
  end();
}

const troubled = (line: 'database' | 'store', trouble: Parameters<Proxy['trouble']>[0], ms: number) =>
  during(
    ms,
    () => lines[line].trouble(trouble),
    () => lines[line].trouble({}),
  );

const wrongClock = (name: string, seconds: number) =>
  during(
    15_000,
    () => clocks.set(name, seconds),
    () => clocks.set(name, 0),
  );

const tablesDisk = () => join(tables, 'disk');
const logDisk = () => join(tables, 'log');

const alive = () =>
  cluster.query('select 1').then(
    () => true,
    () => false,
  );

const oneOf = <T>(things: readonly T[], random: () => number) => things[Math.floor(random() * things.length)] as T;

const faults: Faults = {
  'the database answers 200 ms late': () => troubled('database', { latencyMs: 100 }, 20_000),
  'connections to the database break, all at once, again and again': async () => {
    for (let times = 0; times < 20; times++) {
      lines.database.cut();
      // A window: all connect anew.
      await Bun.sleep(500);
    }
  },
  'the database is silent for a minute': () => troubled('database', { isDead: true }, 60_000),
  'the database gives statements up after 20 ms': async () => {
    const set = (change: string) =>
      cluster.query(`do $$ begin execute format('alter database %I ${change}', current_database()); end $$`);
    await set("set statement_timeout = ''20ms''");
    lines.database.cut();
    // A window: all work by that.
    await Bun.sleep(20_000);
    await set('reset statement_timeout');
    lines.database.cut();
  },
  'what the database notifies of is lost again and again': async () => {
    for (let times = 0; times < 40; times++) {
      await cluster.query("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %'");
      // A window: who listens connects anew.
      await Bun.sleep(500);
    }
  },
  'the disk of the database is full': async () => {
    const emptied = await fillDisk(tablesDisk(), leftBytes);
    await during(20_000, () => {}, emptied);
  },
  'the disk of the log of the database is full, which ends the server': async () => {
    const emptied = await fillDisk(logDisk(), leftBytes);
    await Bun.write(join(logDisk(), 'rest'), new Uint8Array(leftBytes)).catch(() => {});
    // Its next file is one that it has no room for.
    for (let files = 0; files < logFilesMax; files++) {
      const goesOn = await cluster.query("select pg_logical_emit_message(false, 'fill', 'x'), pg_switch_wal()").then(
        () => true,
        () => false,
      );
      if (!goesOn) break;
    }
    await during(20_000, () => {}, emptied);
    rmSync(join(logDisk(), 'rest'), { force: true });
    await until('the server is back', () => postgres.revive().then(alive, () => false));
  },
  'the store takes 10 KB a second': () => troubled('store', { bytesPerSecond: 10_000 }, 30_000),
  'the store resets connections in the middle of parts': () => troubled('store', { resetAfterBytes: 65_536 }, 20_000),
  'the store is silent': () => troubled('store', { isDead: true }, 20_000),
  'the platform of a machine stands still for longer than it may be silent': async random => {
    const node = oneOf(cluster.nodes, random);
    await during(
      35_000,
      () => node.freeze(),
      () => node.thaw(),
    );
  },
  'the clock of a machine is an hour ahead': random => wrongClock(oneOf(['node0', 'node1'], random), hourSeconds),
  'the clock of a machine is an hour behind': random => wrongClock(oneOf(['node0', 'node1'], random), -hourSeconds),
  'the clock of a control process is an hour ahead': random =>
    wrongClock(`control${Math.floor(random() * size.controls)}`, hourSeconds),
  'the clock of a control process is an hour behind': random =>
    wrongClock(`control${Math.floor(random() * size.controls)}`, -hourSeconds),
  'the clock of the database is an hour ahead': () => wrongClock('database', hourSeconds),
  'the clock of the database is an hour behind': () => wrongClock('database', -hourSeconds),
  'the disk of a machine is full': async random => {
    const emptied = await fillDisk(oneOf(cluster.nodes, random).dataDir);
    await during(20_000, () => {}, emptied);
  },
};
const chosen = Object.fromEntries(Object.entries(faults).filter(([name]) => kinds.test(name)));
const count = Number(process.env['FAULTS'] ?? Object.keys(chosen).length);

/** How late each of two sandboxes ends, ms, if something happens while they run. */
async function latenesses(control: number, happen = () => {}, ms = lifeMs): Promise<number[]> {
  const both = await Promise.all(
    [0, 1].map(number =>
      Sandbox.create('base', { ...connectionTo(cluster, (control + number) % size.controls), timeoutMs: ms }),
    ),
  );
  const rows = await cluster.query<{ sandbox_id: string; end_at_us: string }>('select * from sandboxes');
  happen();
  const seen = new Map<string, number>();
  await until('both have ended', async () => {
    const there = await cluster.query<{ sandbox_id: string }>('select sandbox_id from sandboxes');
    for (const { sandboxId } of both)
      if (!seen.has(sandboxId) && !there.some(row => row.sandbox_id === sandboxId)) seen.set(sandboxId, Date.now());
    return seen.size === both.length;
  });
  return both.map(({ sandboxId }) => {
    const end = Number(rows.find(row => row.sandbox_id === sandboxId)?.end_at_us) / 1000;
    return Math.round((seen.get(sandboxId) ?? 0) - end);
  });
}

clusterTest('sandboxes end at their time, whatever any clock of the cluster shows', async () => {
  await layersEverywhere(cluster);
  for (const [index, name] of ['node0', 'control0', 'database'].entries()) {
    // Their delay under a correct clock is the machine's own, which may be busy.
    const usualMs = Math.max(...(await latenesses(index)));
    for (const wrong of [hourSeconds, -hourSeconds]) {
      const lateMs = await latenesses(index, () => clocks.set(name, wrong)).finally(() => clocks.set(name, 0));
      process.stderr.write(`${name} ${wrong} s wrong: ended ${lateMs.join()} ms late, ${usualMs} ms by a right one\n`);
      for (const late of lateMs) {
        expect(late).toBeGreaterThan(-100);
        expect(late).toBeLessThan(usualMs + lateMsMax);
      }
      await allReady(cluster);
    }
  }
  await atRest(cluster, s3.folder);
});

clusterTest('sandboxes end at their time where the clock of the database goes 5 % too fast', async () => {
  let wrong = 0;
  const drift = setInterval(() => clocks.set('database', ++wrong), driftMs);
  const lateMs = await latenesses(1, () => {}, driftLifeMs).finally(() => clearInterval(drift));
  clocks.set('database', 0);
  process.stderr.write(`${wrong} s too fast: ended ${lateMs.join()} ms late\n`);
  expect(wrong).toBeGreaterThanOrEqual(4);
  for (const late of lateMs) expect(late).toBeGreaterThan(-2_000);
  await allReady(cluster);
  await atRest(cluster, s3.folder);
});

clusterTest(`nothing that was answered is undone by ${count} faults that are hard to tell (seed ${seed})`, async () => {
  await layersEverywhere(cluster);
  await workThrough(cluster, { seed, folder: s3.folder, count, faults: chosen });
});
