import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { syncPath } from '../../base/sync.ts';
import { requirePair } from '../installation/check.ts';
import type { Place } from '../installation/place.ts';
import { linkLayers, pickLayers } from './layers.ts';
import { writeManifest } from './manifest.ts';
import { nodeFiles } from './places.ts';
import { copyPlainFiles } from './plain-files.ts';
import { packSandboxes, type PackedSandboxes } from './sandboxes.ts';
import { recordBackup, writeState } from './state.ts';
import { pack } from './tar.ts';
import { packVolumes } from './volumes.ts';

const noSandboxes: PackedSandboxes = { packed: [], layers: new Set<string>(), leftOut: [] };

/** Result of a backup. `restlessVolumes`: volumes that were written to while they were copied. */
type BackupReport = {
  file: string;
  bytes: number;
  layers: number;
  sandboxes: string[];
  leftOut: PackedSandboxes['leftOut'];
  restlessVolumes: string[];
};

/**
 * Writes everything that an installation needs to exist again into one file, while it may be running. The file appears
 * whole or not at all. Errors: `not_found` where there is no installation or no directory for the file, `conflict`
 * where the file exists.
 */
export async function writeBackup(
  place: Place,
  account: string,
  file: string,
  options: { sandboxes: boolean },
): Promise<BackupReport> {
  const { dataDir, database } = place;
  if (!existsSync(join(dataDir, 'seed')))
    throw new AtollError(
      'not_found',
      `There is no installation in ${dataDir}. Set ATOLL_DATA_DIR to the directory of the one you mean.`,
    );
  await requirePair(place);
  if (existsSync(file)) throw new AtollError('conflict', `${file} is there already`);
  // A disk that was to be mounted there is not; the backup would lie on this one.
  if (!existsSync(dirname(file)))
    throw new AtollError(
      'not_found',
      `There is no directory ${dirname(file)}: make it, or name another. Nothing was written.`,
    );
  // On the file system of the installation, so that layers can be linked.
  removeLeftovers(dataDir);
  const scratch = mkdtempSync(join(dataDir, `backup-${process.pid}-`));
  const staging = join(scratch, 'content');
  mkdirSync(staging);
  const partial = `${file}.partial`;
  try {
    copyPlainFiles(dataDir, staging);
    linkLayers(dataDir, staging);
    const state = await writeState(database, staging, join(scratch, 'copy.sqlite'));
    const sandboxes = options.sandboxes ? await packSandboxes(place, staging, state.paused) : noSandboxes;
    const layers = pickLayers(dataDir, staging, state.layers.union(sandboxes.layers));
    for (const name of nodeFiles)
      if (existsSync(join(dataDir, 'node', name)))
        await pack(join(dataDir, 'node', name), join(staging, `${name}.tar`), { live: true });
    const restlessVolumes = await packVolumes(dataDir, staging);
    await writeManifest(staging, sandboxes.packed);
    // Others may link and unlink layers meanwhile, which tar calls a change. Their bytes are checked by their digests.
    await pack(staging, partial, { live: true });
    await syncPath(partial);
    await recordBackup(database, account);
    renameSync(partial, file);
    await syncPath(dirname(file));
    const { packed, leftOut } = sandboxes;
    return { file, bytes: statSync(file).size, layers, sandboxes: packed, leftOut, restlessVolumes };
  } finally {
    rmSync(partial, { force: true });
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Removes leftovers of backups that were killed. */
function removeLeftovers(dataDir: string): void {
  for (const name of readdirSync(dataDir)) {
    const [, pid] = /^backup-(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(dataDir, name), { recursive: true, force: true });
  }
}
