import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Refused } from './catalogue.mjs';

const execute = promisify(execFile);
/** Of what an installer says, in bytes. */
const outputMax = 16 * 1024 * 1024;
/** Of its end, in an error. */
const shownCharacters = 2000;

/** Installs a server, unless it is there as it is asked for. Throws `Refused` with what its installer said last. */
export async function install({ name, folder, npm, pypi, repository, installCmd }) {
  const what = JSON.stringify([npm ?? pypi ?? repository, installCmd]);
  // Written last: what was cut off is begun anew.
  const marker = `${folder}.installed`;
  if (existsSync(marker) && readFileSync(marker, 'utf8') === what) return;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  if (npm !== undefined) await run(name, ['npm', 'install', '--prefix', folder, '--no-audit', '--no-fund', npm]);
  else if (pypi !== undefined) {
    await run(name, ['python3', '-m', 'venv', folder]);
    await run(name, [join(folder, 'bin/pip'), 'install', '--no-cache-dir', '--disable-pip-version-check', pypi]);
  } else {
    // A stranger's repository gets the rights of the sandbox's user, as when it runs.
    await run(name, ['install', '-d', '-o', 'user', '-g', 'user', folder]);
    await run(name, asUser(['git', 'clone', '--depth', '1', '--', repository, folder]));
    if (installCmd !== undefined) await run(name, asUser(['/bin/bash', '-lc', installCmd]), folder);
  }
  writeFileSync(marker, what);
}

/** A command line as the sandbox's user, with that user's home. */
export const asUser = command => [...becomeUser, 'env', 'HOME=/home/user', 'USER=user', ...command];

const becomeUser = ['setpriv', '--reuid=user', '--regid=user', '--init-groups', '--'];

async function run(name, [program, ...args], cwd = '/') {
  try {
    await execute(program, args, { cwd, maxBuffer: outputMax });
  } catch (error) {
    const said = `${error.stdout ?? ''}${error.stderr ?? ''}`.trim() || error.message;
    throw new Refused(`${name}: could not be installed: ${said.slice(-shownCharacters)}`);
  }
}
