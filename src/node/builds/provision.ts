import { existsSync, readFileSync } from 'node:fs';
import { runCommand } from '../../base/process/command.ts';
import { AtollError } from '../../base/error.ts';
import type { NewTarEntry } from '../../base/write-tar.ts';
import type { BuildState } from '../../protocol/build.ts';
import { cachedLayer, type Build } from './build.ts';
import { lineOf, type Label } from './label.ts';
import { addFiles } from './steps/add-files.ts';
import { runForLayer } from './sandbox/run-for-layer.ts';
import { readScript } from './scripts/read-script.ts';
import { lookInto } from './steps/look-into.ts';

/**
 * Static programs of this machine that stand in for a missing shell in an image; Debian's packages busybox-static and
 * bash-static.
 */
const busyboxes = ['/usr/bin/busybox', '/bin/busybox'];
/** How long a busybox may take to list its applets, milliseconds. */
const listTimeoutMs = 5_000;
const staticBashes = ['/usr/bin/bash-static', '/bin/bash-static'];

/** Where provision.sh records what it could not install. */
const incompleteFile = 'usr/lib/sandbox/incomplete';

/** The applets of busybox that an image without a shell gets too. */
const applets = [
  'cat',
  'chgrp',
  'chmod',
  'chown',
  'cp',
  'cut',
  'date',
  'df',
  'env',
  'false',
  'find',
  'grep',
  'gunzip',
  'gzip',
  'head',
  'id',
  'kill',
  'ln',
  'ls',
  'mkdir',
  'mv',
  'ps',
  'pwd',
  'readlink',
  'rm',
  'rmdir',
  'sed',
  'seq',
  'sleep',
  'sort',
  'stat',
  'tail',
  'tar',
  'tee',
  'test',
  'touch',
  'tr',
  'true',
  'uname',
  'wc',
  'wget',
  'which',
  'whoami',
  'xargs',
  'adduser',
  'addgroup',
  'passwd',
];

/**
 * Adds what every sandbox has to an image: a shell, bash, sudo and certificates if they can be had, the profile,
 * writable places. Errors: `invalid` for an image in which no command could ever run.
 */
export async function provision(build: Build, state: BuildState): Promise<BuildState> {
  const withShell = await ensureShell(build, state);
  const [script, refusals] = provisioningScripts();
  const label: Label = { place: 'base', text: 'provisioning' };
  let incomplete = false;
  const lasts = async (after: BuildState) => !(incomplete = await isThere(build, after, incompleteFile));
  const provisioned = await cachedLayer(
    build,
    { ...withShell, env: {} },
    { kind: 'provision', facts: [script, refusals], label, lasts },
    () =>
      attempt(build, withShell, label, () =>
        runForLayer(build, withShell, {
          argv: ['/bin/sh', '-c', script, 'provision', refusals],
          shown: 'provision',
          user: 'root',
          env: {},
          cwd: '/',
        }),
      ),
  );
  if (incomplete)
    build.log('what the image lacks could not be installed: a build without the cache tries again', { level: 'warn' });
  return ensureBash(build, { ...provisioned, env: state.env });
}

/**
 * Provisioning that may have failed for lack of a network or of memory: its outcome serves the same team for a day,
 * with the same memory, so that an installation without mirrors keeps what it builds upon.
 */
function attempt(
  { cache, forced, request, log, signal }: Build,
  { layers }: BuildState,
  label: Label,
  make: () => Promise<string | null>,
): Promise<string | null> {
  const { teamId, resources } = request;
  const facts = ['provision-attempt', layers, provisioningScripts(), teamId, resources.memoryMiB, dayOf(Date.now())];
  return cache.get(facts, { force: forced, signal, onHit: () => log(`CACHED ${lineOf(label)}`), make });
}

const dayOf = (timeMs: number) => Math.floor(timeMs / (24 * 60 * 60_000));

/** The script that provisioning runs, and the one that it puts into the image. */
export function provisioningScripts(): [string, string] {
  return [readScript('provision.sh'), readScript('refusals.sh')];
}

async function ensureShell(build: Build, state: BuildState): Promise<BuildState> {
  if (await isThere(build, state, 'bin/sh')) return state;
  const busybox = busyboxes.find(isStatic);
  if (busybox === undefined) {
    throw new AtollError(
      'invalid',
      'the image has no /bin/sh, and this node has no static shell to add to it: install the package ' +
        'busybox-static on it, or choose an image with a shell',
    );
  }
  const present = await appletsOf(busybox);
  const links = ['sh', ...applets.filter(name => present.has(name))].map((name): NewTarEntry => ({
    path: `bin/${name}`,
    type: 'symlink',
    target: 'busybox',
    attributes: { mode: 0o777, uid: 0, gid: 0 },
  }));
  return addFiles(build, state, {
    label: { place: 'base', text: 'adding busybox: the image has no shell' },
    files: [programAt('bin/busybox', busybox), ...links],
  });
}

async function ensureBash(build: Build, state: BuildState): Promise<BuildState> {
  if (await isThere(build, state, 'bin/bash')) return state;
  const bash = staticBashes.find(path => existsSync(path));
  if (bash === undefined) {
    throw new AtollError(
      'invalid',
      'the image has no bash, it could not be installed there, and this node has none to add: install the package ' +
        'bash-static on it, or let builds reach the distribution’s packages',
    );
  }
  return addFiles(build, state, {
    label: { place: 'base', text: 'adding a static bash: the image has none' },
    files: [programAt('bin/bash', bash)],
  });
}

/** The applets that a busybox was built with. */
async function appletsOf(busybox: string): Promise<Set<string>> {
  return new Set((await runCommand([busybox, '--list'], { env: {}, timeoutMs: listTimeoutMs })).split('\n'));
}

function programAt(path: string, source: string): NewTarEntry {
  return { path, type: 'file', attributes: { mode: 0o755, uid: 0, gid: 0 }, content: readFileSync(source) };
}

/** Whether a file is an ELF program without an interpreter: it needs nothing else of the image. */
function isStatic(path: string): boolean {
  return existsSync(path) && !readFileSync(path).subarray(0, 4096).includes('ld-linux');
}

async function isThere(build: Build, state: BuildState, path: string): Promise<boolean> {
  const { files } = await lookInto(build, state, { files: [path] });
  return files[0] === true;
}
