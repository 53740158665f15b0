import { afterAll, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { restoreBackup } from '../../src/api/backup/restore.ts';
import { openStore } from '../../src/api/database/database.ts';
import { putInstallation } from '../../src/api/database/installation.ts';
import { seedDigestOf } from '../../src/api/installation/check.ts';
import { repository } from '../support/platform.ts';
import { runToEnd, waitFor } from '../support/process.ts';

// Where backups and restored data lie, and what is left of commands that end before they are done. The installation has
// state but no platform: nothing of it runs.

const folder = mkdtempSync(join(tmpdir(), 'atoll-backup-places-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const atoll = (dataDir: string, ...args: string[]) =>
  runToEnd([join(repository, 'bin/atoll'), ...args], { env: { ...process.env, ATOLL_DATA_DIR: dataDir } });
const placeOf = (dataDir: string) => ({
  dataDir,
  database: { kind: 'sqlite' as const, path: join(dataDir, 'api/atoll.sqlite') },
});

/** An installation that has never run a sandbox. */
async function installation(name: string): Promise<string> {
  const dataDir = join(folder, name);
  mkdirSync(join(dataDir, 'api'), { recursive: true });
  mkdirSync(join(dataDir, 'node/layers'), { recursive: true });
  const seed = randomBytes(32);
  writeFileSync(join(dataDir, 'seed'), seed.toString('hex'));
  writeFileSync(join(dataDir, 'node-id'), crypto.randomUUID());
  await using store = await openStore(placeOf(dataDir).database);
  const known = { installationId: crypto.randomUUID(), seedDigest: seedDigestOf(seed), generation: 0 };
  await putInstallation(store.db, { ...known, acceptedAtUs: null });
  return dataDir;
}

const source = await installation('source');
const file = join(folder, 'atoll.backup');
expect(await atoll(source, 'backup', file)).toMatchObject({ exitCode: 0, stderr: '' });
/** A backup that takes long enough to be interrupted: its volume is no file system, which shows only at the end. */
const large = await installation('large');
const volume = join(large, 'node/volumes', crypto.randomUUID());
mkdirSync(volume, { recursive: true });
writeFileSync(join(volume, 'disk.img'), randomBytes(256 << 20));
const largeFile = join(folder, 'large.backup');
expect(await atoll(large, 'backup', largeFile)).toMatchObject({ exitCode: 0, stderr: '' });

test('a backup is restored on a disk that is mounted for it, and on no other', async () => {
  const point = join(folder, 'disk');
  mkdirSync(point);
  expect((await runToEnd(['mount', '-t', 'tmpfs', '-o', 'mode=755', 'atoll-test', point])).exitCode).toBe(0);
  try {
    // As in a new file system.
    mkdirSync(join(point, 'lost+found'));
    expect(await atoll(point, 'restore', file)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(readdirSync(point).toSorted()).toEqual([
      ...['api', 'installation.json', 'lost+found', 'node', 'node-id', 'seed'],
    ]);
    expect(statSync(point).mode & 0o777).toBe(0o700);
    expect(await atoll(point, 'restore', file)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('empty'),
    });
  } finally {
    await runToEnd(['umount', point]);
  }
  expect(readdirSync(folder).filter(name => name.includes('restoring'))).toEqual([]);
});

/** Runs a command until `begun` says that it works, interrupts it, and answers how it ended. */
async function interrupted(signal: 'SIGINT' | 'SIGTERM', begun: () => boolean, dataDir: string, ...args: string[]) {
  const child = Bun.spawn([join(repository, 'bin/atoll'), ...args], {
    env: { ...process.env, ATOLL_DATA_DIR: dataDir },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  await waitFor('the command to work', () => {
    if (child.exitCode !== null) throw new Error('it has ended');
    return begun();
  });
  child.kill(signal);
  return { code: await child.exited, err: await new Response(child.stderr).text() };
}

test('a backup and a restore that are interrupted say so and leave nothing', async () => {
  const has = (directory: string, part: string) => readdirSync(directory).some(name => name.includes(part));
  const there = join(folder, 'there');
  mkdirSync(there);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const another = join(folder, 'another.backup');
    expect(await interrupted(signal, () => has(large, 'backup-'), large, 'backup', another)).toEqual({
      code: 130,
      err: 'atoll backup: Interrupted. Nothing is left of it.\n',
    });
    const err = 'atoll restore: Interrupted. Nothing is left of it.\n';
    const missing = join(folder, 'missing');
    expect(await interrupted(signal, () => has(folder, 'missing.restoring-'), missing, 'restore', largeFile)).toEqual({
      code: 130,
      err,
    });
    expect(await interrupted(signal, () => has(there, 'restoring-'), there, 'restore', largeFile)).toEqual({
      code: 130,
      err,
    });
    expect([has(large, 'backup-'), has(folder, 'another'), has(folder, 'missing'), readdirSync(there)]).toEqual([
      ...[false, false, false, []],
    ]);
  }
}, 60_000);

test('what a restore that was killed has left goes with the next one, and that of one that runs stays', async () => {
  const target = join(folder, 'target');
  // No process has this PID: it is beyond the kernel's own limit.
  for (const left of [`${target}.restoring-99999999`, `${target}.restoring-1`]) mkdirSync(left);
  await expect(restoreBackup(placeOf(target), 'test', file)).rejects.toThrow('Another restore');
  expect([existsSync(`${target}.restoring-99999999`), existsSync(`${target}.restoring-1`)]).toEqual([false, true]);
  rmSync(`${target}.restoring-1`, { recursive: true });
  await restoreBackup(placeOf(target), 'test', file);
  expect(existsSync(join(target, 'seed'))).toBe(true);
  // For an existing directory, it is made inside, so that the directory is not empty then.
  const mounted = join(folder, 'mounted');
  mkdirSync(join(mounted, 'restoring-1'), { recursive: true });
  await expect(restoreBackup(placeOf(mounted), 'test', file)).rejects.toThrow('Another restore');
  rmSync(mounted, { recursive: true });
});

test('what is no file is not called a damaged backup, and a place that takes none is told of at once', async () => {
  for (const name of [folder, '/dev/null', join(folder, 'none')])
    expect(await atoll(join(folder, 'new'), 'restore', name)).toMatchObject({
      exitCode: 1,
      stderr: `atoll restore: There is no file ${name}. Nothing was restored.\n`,
    });
  expect(await atoll(source, 'backup', join(folder, 'x'.repeat(300)))).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^atoll backup: The name of a file is too long.*\n$/),
  });
  expect(readdirSync(source).filter(name => name.startsWith('backup-'))).toEqual([]);
});
