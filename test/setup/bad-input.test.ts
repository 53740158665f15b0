import { afterAll, expect, test } from 'bun:test';
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Database } from 'bun:sqlite';
import { openStore } from '../../src/api/database/database.ts';
import { repository, startPlatform } from '../support/platform.ts';
import { killGroup, runToEnd, start, textOf, waitFor } from '../support/process.ts';

// A start that can't succeed says in one sentence what is wrong and what to do, and changes nothing. Machines that this
// one can't be made into are also pretended, in src/bin/preflight/check.test.ts.

const folder = mkdtempSync(join(tmpdir(), 'atoll-bad-input-'));
const atoll = join(repository, 'bin/atoll');
const nobody = 65_534;
const cleanUps: (() => Promise<void>)[] = [];

afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
  rmSync(folder, { recursive: true, force: true });
});

type Row = {
  name: string;
  /** Makes the faulty thing at the data directory's path. */
  make?(dataDir: string): void | Promise<void>;
  env?(dataDir: string): Record<string, string>;
  argv?(dataDir: string): string[];
  says: RegExp;
  /** Allowed exit codes. Default 1. */
  exits?: number[];
};

const taken = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
cleanUps.push(async () => taken.stop(true));

async function run(...argv: string[]): Promise<void> {
  const { exitCode, stderr } = await runToEnd(argv);
  if (exitCode !== 0) throw new Error(stderr);
}

/** A file system with less room than a first start needs. */
async function smallDisk(point: string, MiB = 64): Promise<void> {
  mkdirSync(point);
  await run('mount', '-t', 'tmpfs', '-o', `size=${MiB}m`, 'atoll-test', point);
  cleanUps.push(() => run('umount', point));
}

/** An installation whose disk something else has filled to the last byte. */
async function fullDisk(point: string): Promise<void> {
  await smallDisk(point, 8);
  mkdirSync(join(point, 'api'));
  writeFileSync(join(point, 'api-key'), 'x');
  await (await openStore({ kind: 'sqlite', path: join(point, 'api/atoll.sqlite') }))[Symbol.asyncDispose]();
  // SQLite's own files, which a killed platform leaves.
  for (const name of ['shm', 'wal']) writeFileSync(join(point, `api/atoll.sqlite-${name}`), '');
  await runToEnd(['dd', 'if=/dev/zero', `of=${join(point, 'filler')}`, 'bs=4k']);
}

/** A user-space file system, like one of another machine. */
async function userSpaceDisk(point: string): Promise<void> {
  mkdirSync(point);
  const server = start(['python3', join(import.meta.dir, 'support/fuse.py'), point], {});
  const [said, failure] = [textOf(server, 'stdout'), textOf(server, 'stderr')];
  cleanUps.push(async () => {
    await run('umount', point);
    killGroup(server, 'SIGKILL');
  });
  await waitFor('the file system', () => {
    if (server.exitCode !== null) throw new Error(failure());
    return said() !== '';
  });
}

/** The start, in its own mount namespace in which `change` was applied to the machine. */
const changed = (change: string): string[] => [
  ...['unshare', '--mount', '--propagation=private', 'sh', '-ec', `${change}; exec "$@"`, 'sh'],
  atoll,
];

async function stateOfNewerVersion(dataDir: string): Promise<void> {
  const path = join(dataDir, 'api/atoll.sqlite');
  mkdirSync(join(dataDir, 'api'), { recursive: true });
  await (await openStore({ kind: 'sqlite', path }))[Symbol.asyncDispose]();
  using database = new Database(path, { readwrite: true, strict: true });
  database.run("insert into kysely_migration (name, timestamp) values ('9999-future', 'x')");
}

const rows: Row[] = [
  {
    name: 'no root',
    argv: () => ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', atoll],
    // In a checkout that others may not read, the shell says so, and exits with its own status.
    says: /needs root|run it as root, e\.g\. with sudo|bin\/atoll: Permission denied/,
    exits: [1, 2],
  },
  {
    name: 'a kernel that is too old',
    argv: () => ['setarch', '--uname-2.6', atoll],
    says: /The kernel is 2\.6\.\d+\S*, and sandboxes need 6\.1 or newer: install one .* and reboot\. Nothing was changed/,
  },
  {
    name: 'another kind of machine',
    argv(dataDir) {
      const pretend = `${dataDir}.ts`;
      writeFileSync(pretend, "Object.defineProperty(process, 'arch', { value: 'riscv64' });");
      return [process.execPath, `--preload=${pretend}`, join(repository, 'src/bin/executable.ts')];
    },
    says: /Atoll runs on x86-64 and arm64, and this machine is riscv64: use another one/,
  },
  {
    name: 'control groups that are missing',
    argv: () => changed('umount --lazy /sys/fs/cgroup'),
    says: /can't run on this machine for want of cgroups \(.*\): Memory, CPU and process limits need .*Nothing was changed/,
  },
  {
    name: 'loop devices that are missing',
    argv: () => changed('mount --bind /dev/null /dev/loop-control'),
    says: /want of a sandbox \(this node has no loop device for another disk: .*\): Loop devices are needed: `modprobe loop`/,
  },
  {
    name: 'a program that is missing',
    env: () => ({ PATH: '/usr/bin:/bin' }),
    says: /nft.* can't be found in PATH, .*: run `apt install .*nftables/,
  },
  {
    name: 'the data directory is a file',
    make: dir => writeFileSync(dir, ''),
    says: /which is a file: set it to a dir/,
  },
  {
    name: 'the data directory is below a file',
    make: dir => writeFileSync(`${dir}-file`, ''),
    env: dir => ({ ATOLL_DATA_DIR: `${dir}-file/data` }),
    says: /ATOLL_DATA_DIR is \S+-file\/data, and \S+-file is a file: set it to a directory/,
  },
  {
    name: 'the data directory is another user’s',
    make(dir) {
      mkdirSync(dir);
      chownSync(dir, nobody, nobody);
    },
    says: /belongs to user 65534, .*chown root/,
  },
  {
    name: 'a file system that is not of this machine',
    make: userSpaceDisk,
    says: /is on FUSE, and sandboxes need a disk of this machine: set ATOLL_DATA_DIR to .* ext4, xfs or btrfs/,
  },
  {
    name: 'a file system that is read-only',
    async make(point) {
      await smallDisk(point);
      await run('mount', '-o', 'remount,ro', point);
    },
    says: /is on a file system that is mounted read-only: mount it for writing .* or set ATOLL_DATA_DIR/,
  },
  { name: 'no space', make: smallDisk, says: /MiB are free for .*, and a first start needs 3072 MiB/ },
  { name: 'a disk that is full', make: fullDisk, says: /The disk of .*atoll\.sqlite is full: make room on it\./ },
  {
    name: 'the port is taken',
    env: () => ({ ATOLL_PORT: String(taken.port) }),
    says: /Port \d+ of 127\.0\.0\.1 can't be opened .*set ATOLL_PORT to another one/,
  },
  {
    name: 'an address of another machine',
    env: () => ({ ATOLL_HOST: '192.0.2.1' }),
    says: /ATOLL_HOST is 192\.0\.2\.1, which is no address of this machine: set it/,
  },
  {
    name: 'a certificate that is not there',
    env: dir => ({ ATOLL_TLS_PORT: '0', ATOLL_TLS_CERT: `${dir}.pem`, ATOLL_TLS_KEY: `${dir}.key` }),
    says: /The certificate .*\.pem with the key .*\.key can't be used \(ENOENT.*set ATOLL_TLS_CERT and ATOLL_TLS_KEY/,
  },
  {
    name: 'a database that does not answer',
    env: () => ({ ATOLL_DATABASE_URL: 'postgres://atoll:secret@127.0.0.1:1/atoll' }),
    says: /PostgreSQL at 127\.0\.0\.1:1\/atoll can't be used: .*Start it, or correct ATOLL_DATABASE_URL/,
  },
  {
    name: 'half an installation',
    make(dir) {
      mkdirSync(dir);
      for (const name of ['seed', 'node-id', 'api-key']) writeFileSync(join(dir, name), 'x');
    },
    says: /atoll\.sqlite is missing, and .* holds an installation.*put its database back/,
  },
  { name: 'a state of a newer version', make: stateOfNewerVersion, says: /newer version.*9999-future/ },
  {
    name: 'a checkout that was never set up',
    make: () => cpSync(join(repository, 'bin'), join(folder, 'clone/bin'), { recursive: true }),
    argv: () => [join(folder, 'clone/bin/atoll')],
    says: /the runtime is not installed yet. Run `npm run up`/,
  },
];

/** Every path below a directory; none if it does not exist. */
function pathsIn(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true }).map(String).toSorted();
  } catch {
    return [];
  }
}

/** Data directories that have a number on this machine; other suites start and end theirs meanwhile. */
function installations(): string[] {
  return pathsIn('/run/atoll').flatMap(path => {
    const owner = join('/run/atoll', path);
    return /^\d+\/owner$/.test(path) && existsSync(owner) ? [readFileSync(owner, 'utf8')] : [];
  });
}

for (const [index, { name, make, env, argv, says, exits = [1] }] of rows.entries()) {
  test(`refused in one sentence, and nothing is changed: ${name}`, async () => {
    const dataDir = join(folder, `data-${index}`);
    await make?.(dataDir);
    const before = pathsIn(dataDir);
    const { exitCode, stderr, stdout } = await runToEnd([...(argv?.(dataDir) ?? [atoll]), 'up', '--json'], {
      env: { ...process.env, ATOLL_DATA_DIR: dataDir, ATOLL_PORT: '0', ATOLL_TEMPLATES: 'none', ...env?.(dataDir) },
    });
    expect(stderr).toMatch(says);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).not.toContain('secret');
    expect(exits).toContain(exitCode ?? -1);
    expect(stdout).toBe('');
    expect(pathsIn(dataDir)).toEqual(before);
    expect(installations().filter(owner => owner.startsWith(folder))).toEqual([]);
  });
}

test('a command for accounts names the database that it can not open on a read-only disk', async () => {
  const dataDir = join(folder, 'read-only');
  await smallDisk(dataDir);
  const path = join(dataDir, 'api/atoll.sqlite');
  mkdirSync(join(dataDir, 'api'));
  for (const name of ['seed', 'node-id', 'api-key']) writeFileSync(join(dataDir, name), 'x');
  await (await openStore({ kind: 'sqlite', path }))[Symbol.asyncDispose]();
  await run('mount', '-o', 'remount,ro', dataDir);
  const env = { ...process.env, ATOLL_DATA_DIR: dataDir };
  const { exitCode, stderr } = await runToEnd([atoll, 'key', 'list'], { env });
  expect(exitCode).toBe(1);
  expect(stderr).toStartWith(`atoll key list: The database of the platform at ${path} can't be read or written (`);
});

test('a first start that was killed is gone on with by the next one', async () => {
  const dataDir = join(folder, 'interrupted');
  const env = { ...process.env, ATOLL_DATA_DIR: dataDir, ATOLL_PORT: '0', ATOLL_TEMPLATES: 'none' };
  const first = start([atoll, 'up', '--json'], { env });
  await waitFor('the first files', () => pathsIn(dataDir).includes('lock'), 120_000);
  expect(pathsIn(dataDir)).not.toContain('api-key');
  killGroup(first, 'SIGKILL');
  // Some administrators' shells let nobody else read new files.
  const usual = process.umask(0o077);
  await using platform = await startPlatform({ ATOLL_DATA_DIR: dataDir }).finally(() => process.umask(usual));
  expect((await platform.api('GET', '/health')).status).toBe(200);

  // A second one on the same directory, at the first one's port.
  const before = pathsIn(dataDir).filter(path => !path.startsWith('node/'));
  const second = { ...env, ATOLL_PORT: new URL(platform.ready.url).port };
  const { exitCode, stderr } = await runToEnd([atoll, 'up', '--json'], { env: second });
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: expect.stringMatching(/^atoll up: The platform of \S+ runs already \(process \d+, at http.*\n$/),
  });
  expect(pathsIn(dataDir).filter(path => !path.startsWith('node/'))).toEqual(before);
}, 240_000);
