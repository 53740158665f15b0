import { chmodSync, copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../setup/run.mjs';
import { settled } from './archive.mjs';
import { settle } from './tree.mjs';

/** Node.js's name for each Debian architecture. */
const processors = { amd64: 'x64', arm64: 'arm64' };

/**
 * Writes `atoll-VERSION-ARCHITECTURE.npm.tar.gz`, for `npm install --global FILE`: only the executable, which works as
 * a client of installations elsewhere. It contains no other part of a platform.
 */
export async function writeNpmPackage(tree, output, { version, description, architecture, epoch }) {
  const folder = join(output, 'package');
  mkdirSync(join(folder, 'bin'), { recursive: true });
  const about = {
    name: 'atoll',
    version,
    description,
    license: 'Apache-2.0',
    bin: { atoll: 'bin/atoll' },
    os: ['linux'],
    cpu: [processors[architecture]],
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(about, null, 2)}\n`);
  copyFileSync(join(tree, 'LICENSE'), join(folder, 'LICENSE'));
  copyFileSync(join(tree, 'bin/atoll'), join(folder, 'bin/atoll'));
  chmodSync(join(folder, 'bin/atoll'), 0o755);
  settle(folder, epoch);
  const archive = join(output, `atoll-${version}-${architecture}.npm.tar`);
  await run(['tar', ...settled(epoch), '-cf', archive, '-C', output, 'package']);
  await run(['gzip', '--no-name', '-6', archive]);
  rmSync(folder, { recursive: true });
}
