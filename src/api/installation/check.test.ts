import { afterAll, expect, test } from 'bun:test';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newUuid } from '../../base/id.ts';
import { openStore } from '../database/database.ts';
import { putInstallation } from '../database/installation.ts';
import { checkPair, databaseOf, requirePair, seedDigestOf } from './check.ts';
import { type InstallationFacts, writeFacts } from './facts.ts';

const root = mkdtempSync(join(tmpdir(), 'atoll-check-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const seed = Buffer.alloc(32, 1);
/** A database with today's schema, to be copied: making one takes longer than most tests. */
const migrated = join(root, 'migrated.sqlite');
await (await openStore({ kind: 'sqlite', path: migrated }))[Symbol.asyncDispose]();
const otherSeed = Buffer.alloc(32, 2);
const facts: InstallationFacts = {
  installationId: 'mine',
  nodeId: 'node-of-mine',
  seedDigest: seedDigestOf(seed),
  database: 'sqlite',
  generation: 5,
};

type Directory = {
  /** Null: there are none. */
  facts?: Partial<InstallationFacts> | null;
  seed?: Buffer | null;
  nodeId?: string | null;
  apiKey?: boolean;
  /** It contains a sandbox, or a volume. */
  keeps?: 'sandboxes' | 'volumes';
};
type Contents = { installationId?: string; seedDigest?: string; generation?: number } | 'unnamed' | 'empty' | null;

/** A data directory and the path of a database, as the test describes them; by default they belong together. */
async function place(directory: Directory = {}, contents: Contents = {}) {
  const dataDir = join(root, newUuid());
  mkdirSync(dataDir);
  const write = (name: string, text: string | null) => text !== null && writeFileSync(join(dataDir, name), text);
  const { seed: ownSeed = seed, nodeId = facts.nodeId, apiKey = false, keeps } = directory;
  if (directory.facts !== null) writeFacts(dataDir, { ...facts, ...directory.facts });
  write('seed', ownSeed && ownSeed.toString('hex'));
  write('node-id', nodeId);
  if (apiKey) write('api-key', 'key');
  if (keeps) mkdirSync(join(dataDir, 'node', keeps, 'one'), { recursive: true });
  const path = join(dataDir, 'state.sqlite');
  if (contents === 'empty') writeFileSync(path, '');
  if (contents !== null && contents !== 'empty') {
    copyFileSync(migrated, path);
    await using store = await openStore({ kind: 'sqlite', path });
    if (contents !== 'unnamed')
      await putInstallation(store.db, {
        ...{ installationId: 'mine', seedDigest: facts.seedDigest, generation: 5, acceptedAtUs: null, ...contents },
      });
  }
  const it = { dataDir, database: { kind: 'sqlite' as const, path } };
  return { ...it, path, check: (accept = false) => checkPair(it, { accept }), require: () => requirePair(it) };
}

const refused = (...says: string[]) => ({
  code: 'precondition',
  message: expect.stringMatching(new RegExp(`${says.map(RegExp.escape).join('.*')}.*Nothing was changed\\.$`)),
});
const url = 'postgres://atoll:secret@db.example.org:5432/state';

test('the name of a database contains no password', () => {
  expect(databaseOf({ kind: 'sqlite', path: '/x' })).toBe('sqlite');
  expect(databaseOf({ kind: 'postgres', url })).toBe('postgres db.example.org:5432/state');
});

test('a directory and a database that were made for each other belong together', async () => {
  for (const generation of [5, 6]) {
    const { check, require, dataDir } = await place({}, { generation });
    const before = readdirSync(dataDir);
    expect(await check()).toEqual({ kind: 'known', facts });
    await require();
    expect(readdirSync(dataDir)).toEqual(before);
    // There is nothing to accept.
    expect(await check(true)).toEqual({ kind: 'known', facts });
  }
});

test('a database that has gone on, or lags behind, is refused unless the operator accepts it', async () => {
  const newer = await place({}, { generation: 7 });
  await expect(newer.check()).rejects.toMatchObject(
    refused(`${newer.dataDir} is an older copy than The database ${newer.path}`, '--accept-database'),
  );
  await expect(newer.require()).rejects.toMatchObject(refused('is an older copy'));
  const older = await place({}, { generation: 4 });
  await expect(older.check()).rejects.toMatchObject(refused('holds an older state', '--accept-database'));
  for (const { check } of [newer, older])
    expect(await check(true)).toMatchObject({
      ...{ kind: 'to record', facts, accepted: true, installation: { installationId: 'mine' } },
    });
});

test('a database that is lost is refused unless the operator accepts that', async () => {
  const cases: [Contents, string][] = [
    [null, 'is missing'],
    ['empty', 'is empty'],
    ['unnamed', 'holds an older state than this directory has seen'],
  ];
  for (const [contents, says] of cases) {
    const { check, path, dataDir } = await place({}, contents);
    await expect(check()).rejects.toMatchObject(refused(`The database ${path} ${says}, and ${dataDir} keeps`));
    expect(await check(true)).toEqual({ kind: 'to record', installation: null, facts, accepted: true });
  }
});

test('the state of another installation is refused, whatever is accepted', async () => {
  for (const other of [{ installationId: 'theirs' }, { seedDigest: 'theirs' }]) {
    const { check, dataDir, path } = await place({}, other);
    for (const accept of [false, true])
      await expect(check(accept)).rejects.toMatchObject(
        refused(
          `The database ${path} holds the state of another installation`,
          `${dataDir} belongs to mine`,
          'Set ATOLL_DATA_DIR to the directory that you mean, or put its own database back',
        ),
      );
  }
});

test('a directory whose files were lost or exchanged is refused', async () => {
  const cases: [Directory, string][] = [
    [{ seed: null }, 'seed is missing: without it'],
    [{ seed: otherSeed }, 'seed is not the seed of this installation (mine)'],
    [{ nodeId: null }, 'node-id is missing. Write node-of-mine into it'],
    [{ nodeId: 'another' }, 'node-id is that of another installation. Write node-of-mine'],
  ];
  for (const [directory, says] of cases) {
    const { check } = await place(directory);
    for (const accept of [false, true]) await expect(check(accept)).rejects.toMatchObject(refused(says));
  }
});

test('a directory does not go over to another kind of database by itself', async () => {
  const here = await place();
  const toPostgres = { dataDir: here.dataDir, database: { kind: 'postgres' as const, url } };
  await expect(checkPair(toPostgres, { accept: true })).rejects.toMatchObject(
    refused(`${here.dataDir} has its state in`, 'and ATOLL_DATABASE_URL names PostgreSQL'),
  );
  const there = await place({ facts: { database: 'postgres db.example.org:5432/state' } }, null);
  await expect(there.check(true)).rejects.toMatchObject(
    refused('has its state in PostgreSQL at db.example.org:5432/state, and ATOLL_DATABASE_URL is not set'),
  );
});

test('a named PostgreSQL that does not answer says nothing about the directory', async () => {
  const there = await place({ facts: { database: 'postgres 127.0.0.1:9/state' } }, null);
  const database = { kind: 'postgres' as const, url: 'postgres://atoll@127.0.0.1:9/state' };
  await expect(checkPair({ dataDir: there.dataDir, database }, { accept: true })).rejects.toMatchObject({
    code: 'unavailable',
  });
});

test('a new directory without a database is new, and so is one that a first start has left', async () => {
  const none = { facts: null, seed: null, nodeId: null };
  for (const directory of [none, { ...none, seed, nodeId: 'n' }])
    for (const contents of [null, 'empty'] as const)
      expect(await (await place(directory, contents)).check()).toEqual({ kind: 'new' });
});

test('a directory that keeps something, or that is in use, has lost its database', async () => {
  const directories: Directory[] = [
    { facts: null, keeps: 'sandboxes' },
    { facts: null, keeps: 'volumes' },
    { facts: null, apiKey: true },
  ];
  for (const directory of directories) {
    const missing = await place(directory, null);
    await expect(missing.check()).rejects.toMatchObject(
      refused(`The database ${missing.path} is missing, and ${missing.dataDir} holds an installation`),
    );
    await expect((await place(directory, 'empty')).check()).rejects.toMatchObject(refused('is empty, and'));
  }
});

test('a database without its directory is refused', async () => {
  const cases: [Directory, string][] = [
    [{ facts: null, seed: null }, 'has no file `seed`'],
    [{ facts: null, nodeId: null }, 'has no file `node-id`'],
    [{ facts: null, seed: null, nodeId: null }, 'has no file `seed`'],
    [{ facts: null, seed: otherSeed }, 'holds the state of another installation than'],
  ];
  for (const [directory, says] of cases)
    await expect((await place(directory)).check()).rejects.toMatchObject(refused(says));
});

test('facts that were lost are recorded again where directory and database agree', async () => {
  const named = await place({ facts: null, keeps: 'volumes', apiKey: true });
  expect(await named.check()).toMatchObject({
    ...{ kind: 'to record', installation: { installationId: 'mine' }, facts: undefined, accepted: false },
  });
  // A first start that was cut off before it recorded its installation.
  expect(await (await place({ facts: null }, 'unnamed')).check()).toEqual({
    ...{ kind: 'to record', installation: null, facts: undefined, accepted: false },
  });
  for (const directory of [{ apiKey: true }, { keeps: 'sandboxes' as const }])
    await expect((await place({ facts: null, ...directory }, 'unnamed')).check()).rejects.toMatchObject(
      refused('holds the state of another installation'),
    );
});

test('a command beside the platform needs an installation’s directory', async () => {
  const nothing = await place({ facts: null, seed: null, nodeId: null }, null);
  await expect(nothing.require()).rejects.toMatchObject({
    code: 'not_found',
    message: expect.stringContaining(`There is no installation in ${nothing.dataDir}`),
  });
  // What the directory contains is checked.
  await expect((await place({ seed: null }, {})).require()).rejects.toMatchObject(refused('seed is missing'));
  await (await place({ facts: null }, 'unnamed')).require();
});

test('an error that keeps a directory from being read is reported', async () => {
  const { check, dataDir } = await place({ facts: null }, null);
  mkdirSync(join(dataDir, 'node'));
  writeFileSync(join(dataDir, 'node/sandboxes'), 'no directory');
  await expect(check()).rejects.toMatchObject({ code: 'ENOTDIR' });
});
