import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { makerOf, ownName, removeLeftovers } from '../../base/process/leftovers.ts';
import type { Place } from '../installation/place.ts';
import { checkManifest } from './manifest.ts';
import type { Manifest } from './manifest.ts';
import { nodeFiles, plainFiles } from './places.ts';
import { restoreSandboxes } from './sandboxes.ts';
import { restoreState } from './state.ts';
import { unpackInto } from './tar.ts';
import { restoreVolumes } from './volumes.ts';

/** The directory that every new file system has, for e2fsck. */
const lostAndFound = 'lost+found';
const restoring = 'restoring';

/**
 * Makes an installation from a backup, in an empty or missing data directory and, where one is configured, in an empty
 * database. It appears whole or not at all. Errors: `not_found` without a file, `conflict` where something is there,
 * `invalid` for a damaged file, `precondition` for a file of a newer version.
 */
export async function restoreBackup(
  place: Place,
  account: string,
  file: string,
  signal?: AbortSignal,
): Promise<Manifest> {
  const { dataDir } = place;
  if (!statSync(file, { throwIfNoEntry: false })?.isFile())
    throw new AtollError('not_found', `There is no file ${file}. Nothing was restored.`);
  const isThere = existsSync(dataDir);
  mkdirSync(dirname(dataDir), { recursive: true });
  // An existing directory may be a disk of its own, which has the room and can't be replaced.
  const [folder, kind] = isThere ? [dataDir, restoring] : [dirname(dataDir), `${basename(dataDir)}.${restoring}`];
  removeLeftovers(folder, kind);
  requireNoRestore(folder, kind, dataDir);
  requireEmpty(dataDir, []);
  const made = join(folder, ownName(kind));
  mkdirSync(made, { mode: 0o700 });
  try {
    const manifest = await makeIn(made, place, account, file, signal);
    signal?.throwIfAborted();
    if (isThere) moveInto(dataDir, made);
    else renameSync(made, dataDir);
    return manifest;
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

async function makeIn(
  made: string,
  place: Place,
  account: string,
  file: string,
  signal: AbortSignal | undefined,
): Promise<Manifest> {
  const unpacked = join(made, 'unpacked');
  mkdirSync(unpacked, { mode: 0o700 });
  await unpackInto(unpacked, file, signal);
  const written = await checkManifest(unpacked, signal);
  await placeFiles(unpacked, made);
  await restoreVolumes(unpacked, made, signal);
  const manifest = { ...written, sandboxes: await restoreSandboxes(unpacked, made, written.sandboxes, signal) };
  // The next start gives this folder to the process that owns it.
  mkdirSync(join(made, 'api'), { mode: 0o700 });
  await restoreState(place, made, unpacked, { manifest, account, signal });
  rmSync(unpacked, { recursive: true });
  return manifest;
}

function requireNoRestore(folder: string, kind: string, dataDir: string): void {
  const pids = readdirSync(folder).flatMap(name => makerOf(kind, name) ?? []);
  if (pids.length > 0)
    throw new AtollError('conflict', `Another restore into ${dataDir} runs (process ${pids.join(', ')}).`);
}

/** Fails with `conflict` where the directory holds anything but `own`. */
function requireEmpty(dataDir: string, own: string[]): void {
  if (!existsSync(dataDir)) return;
  if (readdirSync(dataDir).every(name => name === lostAndFound || own.includes(name))) return;
  throw new AtollError(
    'conflict',
    `${dataDir} is not empty: a backup is restored into a new directory. Set ATOLL_DATA_DIR to one, or move ` +
      'this one away.',
  );
}

/**
 * Moves what was made up into the data directory around it. The database comes first and the seed last: after a loss of
 * power in between, a start is refused.
 */
function moveInto(dataDir: string, made: string): void {
  requireEmpty(dataDir, [basename(made)]);
  chmodSync(dataDir, 0o700);
  const [first, last] = ['api', 'seed'];
  const others = readdirSync(made).filter(name => name !== first && name !== last);
  for (const name of [first, ...others, last]) renameSync(join(made, name), join(dataDir, name));
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
