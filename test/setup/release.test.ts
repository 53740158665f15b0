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

// Two builds of one commit are equal, byte by byte, whoever makes them, where and when. Here the writers of a release
// pack a small tree and the real executable; `npm run release` packs all of it, which takes minutes.

const folder = mkdtempSync(join(tmpdir(), 'atoll-release-'));
afterAll(() => rmSync(folder, { recursive: true }));

const facts = { version: '1.2.3', description: 'A test', architecture: 'amd64', commit: 'c', epoch: 1_700_000_000 };
const digestOf = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');

/** A tree as a build leaves it: its times, modes and file order depend on who made it. */
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
    writeFileSync(
      join(units!, `${name}.service`),
      unitText({ program, role: 'platform', dataDir, namesDataDir: true }),
    );
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
  // The default directory has an installation that no service started.
  const rest = '/var/lib/atoll: atoll down\n';
  expect(await remove('none')).toMatchObject({ exitCode: 0, stdout: first + second + rest, stderr: '' });
  const refused = await remove('/srv/a');
  expect(refused).toMatchObject({ exitCode: 1, stdout: first });
  expect(refused.stderr).toContain('/etc/systemd/system/atoll.service');
});

test('a package takes what was started without a service with it, machines of a cluster among them, or stays', async () => {
  await pack('started', '', false);
  const [scripts, programs, owned] = ['scripts', 'programs', 'owned'].map(name => join(folder, 'started', name));
  const file = join(folder, 'started/output/atoll_1.2.3_amd64.deb');
  expect((await runToEnd(['dpkg-deb', '--control', file, scripts!])).exitCode).toBe(0);
  for (const path of [programs!, owned!]) mkdirSync(path);
  const said = 'echo "$ATOLL_DATA_DIR: atoll $*"; [ "$ATOLL_DATA_DIR" != "$BROKEN" ]';
  writeFileSync(join(programs!, 'atoll'), `#!/bin/sh\n${said}`, { mode: 0o755 });
  const remove = (broken: string, kept: string) => {
    const running = (number: number, path: string, program: string) => [
      `mkdir -p /run/atoll/${number} ${path}; printf %s ${path} > /run/atoll/${number}/owner`,
      `${program} 60 & pids="$pids $!"; printf '{"pid":%s,"startTicks":"1"}' $! > ${path}/instance.json`,
    ];
    const script = [
      "pids=; trap 'kill $pids' EXIT",
      'for place in /run /var/lib /usr/lib/atoll; do mkdir -p $place; mount -t tmpfs atoll-test $place; done',
      'mkdir /var/lib/atoll; cp "$(command -v sleep)" /usr/lib/atoll/program',
      ...running(0, `${owned}/node`, '/usr/lib/atoll/program'),
      ...running(1, `${owned}/checkout`, 'sleep'),
      'mkdir /run/atoll/2; echo /gone > /run/atoll/2/owner; touch /run/atoll/lock',
      `touch /var/lib/atoll/${kept}`,
      `export BROKEN='${broken}' PATH=${programs}:$PATH`,
      `sleep 0.2; sh ${scripts}/prerm remove`,
    ].join('\n');
    return runToEnd(['unshare', '--mount', '--propagation=private', 'sh', '-ec', script]);
  };
  const program = '/usr/lib/atoll';
  const isInstalled = existsSync(program);
  using _ = { [Symbol.dispose]: () => void (isInstalled || rmSync(program, { recursive: true, force: true })) };
  const first = `${owned}/node: atoll down\n`;
  for (const kept of ['seed', 'api-key', 'node-id'])
    expect(await remove('none', kept)).toMatchObject({
      exitCode: 0,
      stdout: `${first}/var/lib/atoll: atoll down\n`,
      stderr: '',
    });
  const refused = await remove(`${owned}/node`, 'settings');
  expect(refused).toMatchObject({ exitCode: 1, stdout: first });
  expect(refused.stderr).toContain(`What runs on ${owned}/node could not be ended`);
});

test('a package restarts services whose database stays as it is, and is installed whatever becomes of the others', async () => {
  await pack('upgraded', '', false);
  const [scripts, programs, units] = ['scripts', 'programs', 'units'].map(name => join(folder, 'upgraded', name));
  const file = join(folder, 'upgraded/output/atoll_1.2.3_amd64.deb');
  expect((await runToEnd(['dpkg-deb', '--control', file, scripts!])).exitCode).toBe(0);
  for (const path of [programs!, units!]) mkdirSync(path);
  const answers = [
    'case $ATOLL_DATA_DIR in',
    '/srv/control) exit 1 ;;',
    '/srv/newer) echo "the schema is of a newer version" >&2; exit 1 ;;',
    `/srv/changed) echo '${JSON.stringify({ pending: ['0099'] }, null, 2)}' ;;`,
    `*) echo '${JSON.stringify({ pending: [] }, null, 2)}' ;;`,
    'esac',
  ];
  writeFileSync(join(programs!, 'atoll'), `#!/bin/sh\n${answers.join('\n')}\n`, { mode: 0o755 });
  const systemctl =
    '#!/bin/sh\necho "systemctl $*"\n[ "$*" != "restart fails.service" ] && [ "$3" != stopped.service ]';
  writeFileSync(join(programs!, 'systemctl'), systemctl, { mode: 0o755 });
  // A machine of a cluster has no database of its own, and control updates its own database.
  const roles = {
    changed: 'platform',
    control: 'control',
    fails: 'platform',
    newer: 'platform',
    same: 'platform',
  } as const;
  for (const [name, role] of Object.entries({ ...roles, stopped: 'node' } as const))
    writeFileSync(
      join(units!, `${name}.service`),
      unitText({ program: '/usr/lib/atoll/bin/atoll', role, dataDir: `/srv/${name}`, namesDataDir: true }),
    );
  const script = [
    'mount -t tmpfs atoll-test /run; mkdir -p /run/systemd/system',
    `mount --bind ${units} /etc/systemd/system; export PATH=${programs}:$PATH; sh ${scripts}/postinst configure 1.2.4`,
  ].join('; ');
  const { exitCode, stdout, stderr } = await runToEnd([
    'unshare',
    '--mount',
    '--propagation=private',
    'sh',
    '-ec',
    script,
  ]);
  expect({ exitCode, stdout: stdout.replaceAll(/systemctl --quiet is-active .*\n/g, '') }).toEqual({
    exitCode: 0,
    stdout: ['daemon-reload', ...['control', 'fails', 'same'].map(name => `restart ${name}.service`)]
      .map(args => `systemctl ${args}\n`)
      .join(''),
  });
  expect(stderr).toContain('The service changed goes on with the version that it runs: this one changes its database');
  expect(stderr).toContain('the schema is of a newer version\nThe service newer goes on with the version that it runs');
  expect(stderr).toContain('The service fails did not start again');
});

test('the executable is equal from whichever checkout, to wherever it is built', async () => {
  const checkout = join(folder, 'checkout');
  mkdirSync(checkout);
  for (const name of ['src', 'package.json', 'tsconfig.json'])
    cpSync(join(repository, name), join(checkout, name), { recursive: true });
  // Source maps name packages by their place in the checkout.
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
