import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { ownName, removeLeftovers } from '../../base/process/leftovers.ts';
import { syncPath } from '../../base/sync.ts';
import { isOfCluster, requirePair } from '../installation/check.ts';
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
 * Writes everything that an installation needs to exist again into one file; the installation may be running. The file
 * appears whole or not at all. Errors: `not_found` where there is no installation or no directory for the file,
 * `conflict` where the file exists, `precondition` for a cluster.
 */
export async function writeBackup(
  place: Place,
  account: string,
  file: string,
  options: { sandboxes: boolean; signal?: AbortSignal | undefined },
): Promise<BackupReport> {
  await requireInstallation(place);
  const folder = dirname(file);
  if (existsSync(file)) throw new AtollError('conflict', `${file} is there already`);
  // The disk that should be mounted there is missing; the backup would end up on this one.
  if (!existsSync(folder))
    throw new AtollError(
      'not_found',
      `There is no directory ${folder}: make it, or name another. Nothing was written.`,
    );
  const partialKind = `${basename(file)}.partial`;
  removeLeftovers(folder, partialKind);
  const partial = join(folder, ownName(partialKind));
  // Made before anything else, to fail at once where no file can be made.
  closeSync(openSync(partial, 'wx', 0o600));
  try {
    const report = await writeTo(place, partial, options);
    await syncPath(partial);
    await recordBackup(place.database, account);
    renameSync(partial, file);
    await syncPath(folder);
    return { ...report, file, bytes: statSync(file).size };
  } finally {
    rmSync(partial, { force: true });
  }
}

async function requireInstallation(place: Place): Promise<void> {
  await requirePair(place);
  const { dataDir, database } = place;
  if (await isOfCluster(database))
    throw new AtollError(
      'precondition',
      `${dataDir} is of a control process: layers, disks and volumes are on the machines of its cluster and in its ` +
        'store. Save the database, the store, and the files `seed` and `admin-token` (docs/cluster.md, "Backup and ' +
        'restore"). Nothing was written.',
    );
}

async function writeTo(
  { dataDir, database }: Place,
  partial: string,
  { sandboxes: withSandboxes, signal }: { sandboxes: boolean; signal?: AbortSignal | undefined },
): Promise<Omit<BackupReport, 'file' | 'bytes'>> {
  // On the installation's file system, so that layers can be linked.
  removeLeftovers(dataDir, 'backup');
  const scratch = mkdtempSync(join(dataDir, `${ownName('backup')}-`));
  const staging = join(scratch, 'content');
  mkdirSync(staging);
  try {
    copyPlainFiles(dataDir, staging);
    linkLayers(dataDir, staging);
    const state = await writeState(database, staging, join(scratch, 'copy.sqlite'));
    const sandboxes = withSandboxes
      ? await packSandboxes({ dataDir, database }, staging, state.paused, signal)
      : noSandboxes;
    const layers = pickLayers(dataDir, staging, state.layers.union(sandboxes.layers));
    for (const name of nodeFiles)
      if (existsSync(join(dataDir, 'node', name)))
        await pack(join(dataDir, 'node', name), join(staging, `${name}.tar`), { live: true, signal });
    const restlessVolumes = await packVolumes(dataDir, staging, signal);
    await writeManifest(staging, sandboxes.packed, signal);
    // Others may link and unlink layers meanwhile, which tar calls a change. The layers' digests prove their bytes.
    await pack(staging, partial, { live: true, signal });
    const { packed, leftOut } = sandboxes;
    return { layers, sandboxes: packed, leftOut, restlessVolumes };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
