import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { Place } from '../installation/place.ts';
import { checkManifest } from './manifest.ts';
import type { Manifest } from './manifest.ts';
import { nodeFiles, plainFiles } from './places.ts';
import { restoreSandboxes } from './sandboxes.ts';
import { restoreState } from './state.ts';
import { unpackInto } from './tar.ts';
import { restoreVolumes } from './volumes.ts';

/**
 * Makes an installation from a backup, in a data directory that is empty or missing and, where one is configured, in an
 * empty database. It appears whole or not at all. Errors: `conflict` where something is there, `invalid` for a damaged
 * file, `precondition` for one of a newer version.
 */
export async function restoreBackup(place: Place, account: string, file: string): Promise<Manifest> {
  const { dataDir } = place;
  if (!existsSync(file)) throw new AtollError('not_found', `There is no file ${file}`);
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0) {
    throw new AtollError(
      'conflict',
      `${dataDir} is not empty: a backup is restored into a new directory. Set ATOLL_DATA_DIR to one, or move ` +
        'this one away.',
    );
  }
  mkdirSync(dirname(dataDir), { recursive: true });
  const made = `${dataDir}.restoring`;
  if (existsSync(made))
    throw new AtollError('conflict', `${made} is there: of a restore that runs, or that was cut off; then delete it.`);
  mkdirSync(made, { mode: 0o700 });
  try {
    const unpacked = join(made, 'unpacked');
    mkdirSync(unpacked, { mode: 0o700 });
    await unpackInto(unpacked, file);
    const written = await checkManifest(unpacked);
    await placeFiles(unpacked, made);
    await restoreVolumes(unpacked, made);
    const manifest = { ...written, sandboxes: await restoreSandboxes(unpacked, made, written.sandboxes) };
    // The next start gives it to the process that owns it.
    mkdirSync(join(made, 'api'), { mode: 0o700 });
    await restoreState(place, made, unpacked, { manifest, account });
    rmSync(unpacked, { recursive: true });
    if (existsSync(dataDir)) rmdirSync(dataDir);
    renameSync(made, dataDir);
    return manifest;
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

async function placeFiles(unpacked: string, made: string): Promise<void> {
  for (const name of plainFiles)
    if (existsSync(join(unpacked, name))) renameSync(join(unpacked, name), join(made, name));
  mkdirSync(join(made, 'node'), { mode: 0o700 });
  renameSync(join(unpacked, 'layers'), join(made, 'node/layers'));
  for (const name of nodeFiles) {
    if (!existsSync(join(unpacked, `${name}.tar`))) continue;
    mkdirSync(join(made, 'node', name), { mode: 0o700 });
    await unpackInto(join(made, 'node', name), join(unpacked, `${name}.tar`));
  }
}
