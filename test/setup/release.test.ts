import { afterAll, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeArchive, writeChecksums } from '../../scripts/release/archive.mjs';
import { writeDebianPackage } from '../../scripts/release/debian-package.mjs';
import { writeNpmPackage } from '../../scripts/release/npm-package.mjs';
import { settle } from '../../scripts/release/tree.mjs';
import { buildExecutable, compileExecutable } from '../../scripts/setup/executable.mjs';
import { unitText } from '../../src/bin/systemd/unit.ts';
import { repository } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

// Two builds of one commit are equal, octet by octet, whoever makes them, where and when. Here the writers of a release
// pack a small tree and the real executable; `npm run release` packs all of it, which takes minutes.

const folder = mkdtempSync(join(tmpdir(), 'atoll-release-'));
afterAll(() => rmSync(folder, { recursive: true }));

const facts = { version: '1.2.3', description: 'A test', architecture: 'amd64', commit: 'c', epoch: 1_700_000_000 };
const digestOf = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');

/** A tree as a build leaves it: its times, modes and order of files depend on who made it. */
function treeAt(place: string, text: string, later: boolean): string {
  const tree = join(folder, place, 'tree');
  const names = ['docs/a.md', 'docs/z/b.md', 'sbom.json', 'LICENSE', 'bin/atoll'];
  for (const name of later ? names.toReversed() : names) {
    const path = join(tree, name);
    mkdirSync(join(path, '..'), { recursive: true, mode: later ? 0o700 : 0o755 });
    writeFileSync(path, `${name}${text}`);
    chmodSync(path, name.startsWith('bin/') ? (later ? 0o700 : 0o755) : later ? 0o600 : 0o664);
    utimesSync(path, later ? 5e8 : 6e8, later ? 5e8 : 6e8);
  }
  symlinkSync('docs/a.md', join(tree, 'link'));
  return tree;
}

async function pack(place: string, text: string, later: boolean): Promise<string> {
  const tree = treeAt(place, text, later);
  const output = join(folder, place, 'output');
  mkdirSync(output);
  settle(tree, facts.epoch);
  await writeDebianPackage(tree, output, facts);
  await writeArchive(tree, output, facts);
  await writeNpmPackage(tree, output, facts);
  return writeChecksums(output);
}

test('equal contents make equal packages, archives and digests, and others do not', async () => {
  const sums = await pack('one', '', false);
  expect(sums.trim().split('\n')).toHaveLength(4);
  expect(await pack('a/place/of/another', '', true)).toBe(sums);
  const other = await pack('changed', '!', false);
  for (const line of other.trim().split('\n')) expect(sums).not.toContain(line);
});

test('a package is removed from under a first start, and purged where a disk is mounted for its data', async () => {
  await pack('removed', '', false);
  const [scripts, programs] = ['scripts', 'programs'].map(name => join(folder, 'removed', name));
  const file = join(folder, 'removed/output/atoll_1.2.3_amd64.deb');
  expect((await runToEnd(['dpkg-deb', '--control', file, scripts!])).exitCode).toBe(0);
  mkdirSync(programs!);
  writeFileSync(join(programs!, 'atoll'), '#!/bin/sh\necho "atoll $*"', { mode: 0o755 });
  const script = [
    ...['/var/lib', '/var/cache'].map(point => `mount -t tmpfs atoll-test ${point}; mkdir ${point}/atoll`),
    'mount -t tmpfs atoll-test /var/lib/atoll',
    'mkdir /var/lib/atoll/node; touch /var/lib/atoll/seed /var/cache/atoll/layer',
    `PATH=${programs}:$PATH; sh ${scripts}/prerm remove; sh ${scripts}/postrm purge`,
    'ls -A /var/lib/atoll; ls /var/cache; echo purged',
  ].join('; ');
  const purged = await runToEnd(['unshare', '--mount', '--propagation=private', 'sh', '-ec', script]);
  expect(purged).toMatchObject({ exitCode: 0, stdout: 'atoll down\npurged\n', stderr: '' });
});

test('a package takes its services with it, whatever they are called and run, or stays', async () => {
  await pack('services', '', false);
  const [scripts, programs, units] = ['scripts', 'programs', 'units'].map(name => join(folder, 'services', name));
  const file = join(folder, 'services/output/atoll_1.2.3_amd64.deb');
  expect((await runToEnd(['dpkg-deb', '--control', file, scripts!])).exitCode).toBe(0);
  for (const path of [programs!, units!]) mkdirSync(path);
  const said = 'echo "$ATOLL_DATA_DIR: atoll $*"; [ "$ATOLL_DATA_DIR" != "$BROKEN" ]';
  writeFileSync(join(programs!, 'atoll'), `#!/bin/sh\n${said}`, { mode: 0o755 });
  const addUnit = (name: string, program: string, dataDir: string) =>
    writeFileSync(join(units!, `${name}.service`), unitText({ program, dataDir, namesDataDir: true }));
  addUnit('atoll', '/usr/lib/atoll/bin/atoll', '/srv/a');
  addUnit('beta', '/usr/lib/atoll/bin/atoll', '/srv/b | c');
  addUnit('checkout', '/srv/checkout/bin/atoll', '/srv/checkout/data');
  const remove = (broken: string) => {
    const script = [
      'mount -t tmpfs atoll-test /run; mkdir -p /run/systemd/system',
      `mount --bind ${units} /etc/systemd/system; mount -t tmpfs atoll-test /var/lib; mkdir /var/lib/atoll`,
      'touch /var/lib/atoll/seed',
      `export ATOLL_DATA_DIR=/elsewhere BROKEN='${broken}' PATH=${programs}:$PATH; sh ${scripts}/prerm remove`,
    ].join('; ');
    return runToEnd(['unshare', '--mount', '--propagation=private', 'sh', '-ec', script]);
  };
  const [first, second] = ['/srv/a: atoll uninstall --name atoll\n', '/srv/b | c: atoll uninstall --name beta\n'];
  expect(await remove('none')).toMatchObject({ exitCode: 0, stdout: first + second, stderr: '' });
  const refused = await remove('/srv/a');
  expect(refused).toMatchObject({ exitCode: 1, stdout: first });
  expect(refused.stderr).toContain('/etc/systemd/system/atoll.service');
});

test('the executable is equal from whichever checkout, to wherever it is built', async () => {
  const checkout = join(folder, 'checkout');
  mkdirSync(checkout);
  for (const name of ['src', 'package.json', 'tsconfig.json'])
    cpSync(join(repository, name), join(checkout, name), { recursive: true });
  // Maps name packages by where they are in the checkout.
  const { packages } = JSON.parse(readFileSync(join(repository, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; optional?: boolean }>;
  };
  for (const [path, { dev, optional }] of Object.entries(packages))
    if (path !== '' && !dev && !path.includes('@oven') && (!optional || existsSync(join(repository, path))))
      cpSync(join(repository, path), join(checkout, path), { recursive: true });
  symlinkSync(join(repository, 'node_modules/@oven'), join(checkout, 'node_modules/@oven'));
  await buildExecutable(repository);
  const other = join(folder, 'further/atoll');
  mkdirSync(join(folder, 'further'));
  await compileExecutable(checkout, other);
  expect(digestOf(other)).toBe(digestOf(join(repository, 'dist/atoll')));
}, 120_000);
