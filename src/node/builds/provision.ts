import { existsSync, readFileSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import type { NewTarEntry } from '../../base/write-tar.ts';
import type { BuildState } from '../../protocol/build.ts';
import { cachedLayer, type BuildContext } from './build-context.ts';
import { addFiles } from './add-files.ts';
import { runForLayer } from './run-command.ts';
import { readScript } from './scripts/read-script.ts';
import { lookInto } from './look-into.ts';

/** Static programs of this machine that stand in where an image has no shell; Debian's packages busybox-static and bash-static. */
const busyboxes = ['/usr/bin/busybox', '/bin/busybox'];
const staticBashes = ['/usr/bin/bash-static', '/bin/bash-static'];

/** What of busybox an image without a shell is given beside it. */
const applets = [
  'cat', 'chgrp', 'chmod', 'chown', 'cp', 'cut', 'date', 'df', 'env', 'false', 'find', 'grep', 'gunzip', 'gzip', 'head', 'id', 'kill', 'ln', 'ls', 'mkdir',
  'mv', 'ps', 'pwd', 'readlink', 'rm', 'rmdir', 'sed', 'seq', 'sleep', 'sort', 'stat', 'tail', 'tar', 'tee', 'test', 'touch', 'tr', 'true', 'uname',
  'wc', 'wget', 'which', 'whoami', 'xargs', 'adduser', 'addgroup', 'passwd',
];

/**
 * Adds to an image what every sandbox has: a shell, bash, sudo and certificates where they can be had, the profile,
 * writable places. Errors: `invalid` for an image in which no command could ever run.
 */
export async function provision(context: BuildContext, state: BuildState): Promise<BuildState> {
  const withShell = await ensureShell(context, state);
  const script = readScript('provision.sh');
  const provisioned = await cachedLayer(context, { ...withShell, env: {} }, { kind: 'provision', facts: script, label: '[base] provisioning' }, () =>
    runForLayer(context, withShell, { argv: ['/bin/sh', '-c', script], shown: 'provision', user: 'root', env: {}, cwd: '/' }),
  );
  return ensureBash(context, { ...provisioned, env: state.env });
}

async function ensureShell(context: BuildContext, state: BuildState): Promise<BuildState> {
  if (await isThere(context, state, 'bin/sh')) return state;
  const busybox = busyboxes.find(isStatic);
  if (busybox === undefined) {
    throw new AtollError('invalid', 'the image has no /bin/sh, and this node has no static shell to add to it: install the package busybox-static on it, or choose an image with a shell');
  }
  const present = await appletsOf(busybox);
  const links = ['sh', ...applets.filter(name => present.has(name))].map((name): NewTarEntry => ({ path: `bin/${name}`, type: 'symlink', target: 'busybox', attributes: { mode: 0o777, uid: 0, gid: 0 } }));
  return addFiles(context, state, { label: '[base] adding busybox: the image has no shell', files: [programAt('bin/busybox', busybox), ...links] });
}

async function ensureBash(context: BuildContext, state: BuildState): Promise<BuildState> {
  if (await isThere(context, state, 'bin/bash')) return state;
  const bash = staticBashes.find(path => existsSync(path));
  if (bash === undefined) {
    throw new AtollError('invalid', 'the image has no bash, it could not be installed there, and this node has none to add: install the package bash-static on it, or let builds reach the distribution’s packages');
  }
  return addFiles(context, state, { label: '[base] adding a static bash: the image has none', files: [programAt('bin/bash', bash)] });
}

/** Which applets a busybox was built with. */
async function appletsOf(busybox: string): Promise<Set<string>> {
  const child = Bun.spawn([busybox, '--list'], { env: {}, stdin: 'ignore', stdout: 'pipe', stderr: 'ignore', timeout: 5_000 });
  return new Set((await new Response(child.stdout).text()).split('\n'));
}

function programAt(path: string, source: string): NewTarEntry {
  return { path, type: 'file', attributes: { mode: 0o755, uid: 0, gid: 0 }, content: readFileSync(source) };
}

/** An ELF program without an interpreter needs nothing else of the image. */
function isStatic(path: string): boolean {
  return existsSync(path) && !readFileSync(path).subarray(0, 4096).includes('ld-linux');
}

async function isThere(context: BuildContext, state: BuildState, path: string): Promise<boolean> {
  const { files } = await lookInto(context, state, { files: [path] });
  return files[0] === true;
}

