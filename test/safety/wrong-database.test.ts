import { expect, test } from 'bun:test';
import { Database } from 'bun:sqlite';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  mkdirSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import { PostgresCluster, postgresPrograms, withoutPostgres } from '../api/postgres.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { testUnless } from '../support/skip.ts';
import { atoll, contentOf } from './support/directory.ts';

const timeoutMs = 240_000;
const clientOf = ({ ready }: TestPlatform) => ({
  apiKey: ready.apiKey,
  apiUrl: ready.url,
  sandboxUrl: ready.url,
  domain: ready.domain,
});

/** One sentence or two, no stack. */
function expectSentence(text: string, pattern: RegExp): void {
  expect(text).toMatch(pattern);
  expect(text).not.toMatch(/\n\s+at |SQLiteError|error:/);
  expect(text.trim().split('\n').length).toBe(1);
}

const overwrite = (file: string, from: number, bytes: number) => {
  const content = readFileSync(file);
  content.fill(0x5a, from, from + bytes);
  writeFileSync(file, content);
};

type Mistake = { name: string; make(dataDir: string): void; env?: Record<string, string>; says: RegExp };

const database = (dataDir: string) => join(dataDir, 'api/atoll.sqlite');
const change = (dataDir: string, sql: string) => {
  using file = new Database(database(dataDir), { readwrite: true, strict: true });
  file.run(sql);
};

const mistakes: Mistake[] = [
  {
    name: 'the database is missing',
    make: dir => rmSync(database(dir)),
    says: /atoll\.sqlite is missing, and .* keeps sandboxes.*Put the right database back.*Nothing was changed/,
  },
  { name: 'the database is empty', make: dir => truncateSync(database(dir)), says: /atoll\.sqlite is empty/ },
  {
    name: 'the database is cut',
    make: dir => truncateSync(database(dir), Math.floor(statSync(database(dir)).size / 8192) * 4096),
    says: /is damaged.*`atoll restore FILE`/,
  },
  {
    name: 'the header of the database is overwritten',
    make: dir => overwrite(database(dir), 0, 4096),
    says: /is damaged \(it is no SQLite database\).*atoll restore/,
  },
  {
    name: 'pages of the database are overwritten',
    make: dir => overwrite(database(dir), 4096 * 3, 4096 * 8),
    says: /is damaged.*atoll restore/,
  },
  {
    name: 'another installation’s database',
    make: dir => change(dir, `update installation set installation_id = 'other'`),
    says: /holds the state of another installation \(other\)/,
  },
  {
    name: 'an older copy of the database',
    make: dir => change(dir, 'update installation set generation = generation - 1'),
    says: /holds an older state than this directory has seen/,
  },
  {
    name: 'an older copy of the directory',
    make: dir => change(dir, 'update installation set generation = generation + 2'),
    says: /is an older copy than The database/,
  },
  {
    name: 'a database that never knew of installations',
    make: dir => change(dir, 'delete from installation'),
    says: /holds an older state/,
  },
  {
    name: 'the seed is missing',
    make: dir => rmSync(join(dir, 'seed')),
    says: /seed is missing.*Put it back from a backup/,
  },
  {
    name: 'the seed is another’s',
    make: dir => writeFileSync(join(dir, 'seed'), 'ab'.repeat(32)),
    says: /seed is not the seed of this installation/,
  },
  {
    name: 'the node’s ID is missing',
    make: dir => rmSync(join(dir, 'node-id')),
    says: /node-id is missing. Write [0-9a-f-]{36} into it/,
  },
  {
    name: 'the note is damaged',
    make: dir => truncateSync(join(dir, 'installation.json'), 10),
    says: /installation\.json is damaged/,
  },
  {
    name: 'PostgreSQL is named though the state is in SQLite',
    make: () => {},
    env: { ATOLL_DATABASE_URL: 'postgres://localhost:1/none' },
    says: /ATOLL_DATABASE_URL names PostgreSQL. Unset it/,
  },
  {
    name: 'everything but the database is gone',
    make: dir => ['seed', 'node-id', 'api-key', 'installation.json'].forEach(name => rmSync(join(dir, name))),
    says: /has no file `seed`/,
  },
  {
    name: 'the note is gone, and the database names no installation',
    make: dir => {
      rmSync(join(dir, 'installation.json'));
      change(dir, 'delete from installation');
    },
    says: /holds the state of another installation/,
  },
  {
    name: 'the state is of a development version',
    make: dir => change(dir, "update kysely_migration set name = '0001-first' where name like '0001-%'"),
    says: /development version of Atoll from before the first release/,
  },
  {
    name: 'the database and the note are gone',
    make: dir => ['api/atoll.sqlite', 'installation.json'].forEach(name => rmSync(join(dir, name))),
    says: /is missing, and .* holds an installation/,
  },
];

test(
  'a start with the wrong state refuses, says why, and touches nothing; with the right one all is there',
  async () => {
    await using platform = await startPlatform();
    const { dataDir } = platform.ready;
    const sandbox = await Sandbox.create(clientOf(platform));
    await sandbox.files.write('/home/user/note', 'kept');
    await sandbox.pause();
    await platform.stop();
    const copy = mkdtempSync(join(tmpdir(), 'atoll-copy-'));
    try {
      const small = ['api/atoll.sqlite', 'seed', 'node-id', 'api-key', 'installation.json'];
      mkdirSync(join(copy, 'api'));
      for (const name of small) copyFileSync(join(dataDir, name), join(copy, name));
      for (const { name, make, env = {}, says } of mistakes) {
        make(dataDir);
        const before = contentOf(dataDir);
        const up = await atoll({ ...platform.env, ...env }, 'up');
        expect({ name, exitCode: up.exitCode, stdout: up.stdout }).toEqual({ name, exitCode: 1, stdout: '' });
        expectSentence(up.stderr, says);
        // A command that works on the state is as careful.
        const key = await atoll({ ...platform.env, ...env }, 'key', 'create', '--name', 'x');
        expect({ name, exitCode: key.exitCode }).toEqual({ name, exitCode: 1 });
        expect({ name, content: contentOf(dataDir) }).toEqual({ name, content: before });
        for (const file of small) cpSync(join(copy, file), join(dataDir, file));
        for (const suffix of ['-wal', '-shm']) rmSync(database(dataDir) + suffix, { force: true });
      }
      // A lost note is made again if the database and the directory agree.
      rmSync(join(dataDir, 'installation.json'));
      await platform.restart();
      expect(existsSync(join(dataDir, 'installation.json'))).toBe(true);
      const again = await Sandbox.connect(sandbox.sandboxId, clientOf(platform));
      expect(await again.files.read('/home/user/note')).toBe('kept');
    } finally {
      rmSync(copy, { recursive: true });
    }
  },
  timeoutMs,
);

test(
  'an empty directory beside a used database is no first start',
  async () => {
    await using platform = await startPlatform();
    await platform.stop();
    const other = mkdtempSync(join(tmpdir(), 'atoll-other-'));
    try {
      mkdirSync(join(other, 'api'));
      copyFileSync(database(platform.ready.dataDir), database(other));
      const up = await atoll({ ...platform.env, ATOLL_DATA_DIR: other }, 'up');
      expectSentence(up.stderr, /has no file `seed`. Set ATOLL_DATA_DIR/);
    } finally {
      rmSync(other, { recursive: true });
    }
  },
  timeoutMs,
);

const programs = postgresPrograms();
testUnless(withoutPostgres())(
  'on PostgreSQL: without its setting, with another database, and with its server away, a start refuses',
  async () => {
    await using cluster = await PostgresCluster.start(programs ?? '');
    const urlOf = (location: Awaited<ReturnType<PostgresCluster['newDatabase']>>) =>
      location.kind === 'postgres' ? location.url : '';
    const [own, empty] = [urlOf(await cluster.newDatabase()), urlOf(await cluster.newDatabase())];
    await using platform = await startPlatform({ ATOLL_DATABASE_URL: own });
    const { dataDir } = platform.ready;
    const sandbox = await Sandbox.create(clientOf(platform));
    await sandbox.pause();
    await platform.stop();
    const before = contentOf(dataDir);
    const { ATOLL_DATABASE_URL: _, ...without } = platform.env;
    expectSentence(
      (await atoll(without, 'up')).stderr,
      /has its state in PostgreSQL at .*, and ATOLL_DATABASE_URL is not set. Set it, best in .*settings/,
    );
    expectSentence(
      (await atoll({ ...without, ATOLL_DATABASE_URL: empty }, 'up')).stderr,
      /is empty, and .* keeps sandboxes/,
    );
    expectSentence(
      (await atoll({ ...without, ATOLL_DATABASE_URL: 'postgres://atoll:hidden@127.0.0.1:1/none' }, 'up')).stderr,
      /PostgreSQL at 127.0.0.1:1\/none can't be used: .*ECONNREFUSED.*ATOLL_DATABASE_URL/,
    );
    expect(contentOf(dataDir)).toEqual(before);
    renameSync(join(dataDir, 'installation.json'), join(dataDir, 'moved'));
    expectSentence(
      (await atoll(without, 'up')).stderr,
      /is missing, and .* holds an installation. Set ATOLL_DATABASE_URL/,
    );
    renameSync(join(dataDir, 'moved'), join(dataDir, 'installation.json'));
    await platform.restart();
    await (await Sandbox.connect(sandbox.sandboxId, clientOf(platform))).kill();
  },
  timeoutMs,
);
