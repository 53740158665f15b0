import { createReadStream, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { recordLocalChange } from '../../api/app/audit.ts';
import { systemClock } from '../../api/app/clock.ts';
import { loadDump } from '../../api/store/load-dump.ts';
import { forgetUnkept } from '../../api/store/restored-state.ts';
import { putInstallation } from '../../api/store/installation.ts';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import { storeLocation } from '../accounts.ts';
import { databaseOf, seedDigestOf } from '../installation/check.ts';
import { writeNote } from '../installation/note.ts';
import type { Settings } from '../settings.ts';
import { checkManifest } from './manifest.ts';
import type { Manifest } from './manifest.ts';
import { nodeFiles, plainFiles, sandboxDirectory, sandboxFiles } from './places.ts';
import { unpackInto } from './tar.ts';
import { restoreVolumes } from './volumes.ts';

/**
 * Makes an installation of a backup, in a data directory that is empty or not there and, where one is configured, in an
 * empty database. It appears whole or not at all. Throws `conflict` where something is there, `invalid` for a damaged file,
 * `precondition` for one of a newer version.
 */
export async function restoreBackup(settings: Settings, account: string, file: string): Promise<Manifest> {
  const { dataDir } = settings;
  if (!existsSync(file)) throw new AtollError('not_found', `There is no file ${file}`);
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0) {
    throw new AtollError('conflict', `${dataDir} is not empty: a backup is restored into a new directory. Set ATOLL_DATA_DIR to one, or move this one away.`);
  }
  mkdirSync(dirname(dataDir), { recursive: true });
  const made = `${dataDir}.restoring`;
  if (existsSync(made)) throw new AtollError('conflict', `${made} is there: of a restore that runs, or that was cut off; then delete it.`);
  mkdirSync(made, { mode: 0o700 });
  try {
    const unpacked = join(made, 'unpacked');
    mkdirSync(unpacked, { mode: 0o700 });
    await unpackInto(unpacked, file);
    const manifest = await checkManifest(unpacked);
    await placeFiles(unpacked, made, manifest.sandboxes);
    await restoreVolumes(unpacked, made);
    // The next start gives it to the process that owns it.
    mkdirSync(join(made, 'api'), { mode: 0o700 });
    const atUs = systemClock()();
    await loadDump(storeLocation({ ...settings, dataDir: made }), linesOf(join(unpacked, 'state.jsonl')), async db => {
      await forgetUnkept(db, manifest.sandboxes, atUs);
      // Both copies may run: an installation of its own, so that neither takes the other's database for its own.
      const seed = Buffer.from(readFileSync(join(made, 'seed'), 'utf8').trim(), 'hex');
      const known = { installationId: newUuid(), seedDigest: seedDigestOf(seed), generation: 0 };
      await putInstallation(db, { ...known, acceptedAtUs: null });
      writeNote(made, { ...known, nodeId: readFileSync(join(made, 'node-id'), 'utf8').trim(), database: databaseOf(storeLocation(settings)) });
      await recordLocalChange(db, { operation: 'cli.restore', account, atUs, teamId: null }, { target: 'installation:this', after: { backupOf: manifest.createdAt } });
    });
    rmSync(unpacked, { recursive: true });
    if (existsSync(dataDir)) rmdirSync(dataDir);
    renameSync(made, dataDir);
    return manifest;
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

async function placeFiles(unpacked: string, made: string, sandboxes: readonly string[]): Promise<void> {
  for (const name of plainFiles) if (existsSync(join(unpacked, name))) renameSync(join(unpacked, name), join(made, name));
  mkdirSync(join(made, 'node'), { mode: 0o700 });
  renameSync(join(unpacked, 'layers'), join(made, 'node/layers'));
  for (const name of nodeFiles) {
    if (!existsSync(join(unpacked, `${name}.tar`))) continue;
    mkdirSync(join(made, 'node', name), { mode: 0o700 });
    await unpackInto(join(made, 'node', name), join(unpacked, `${name}.tar`));
  }
  for (const sandboxId of sandboxes) {
    const directory = sandboxDirectory(made, sandboxId);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    await unpackInto(directory, join(unpacked, 'sandboxes', `${sandboxId}.tar`));
    const record = join(directory, sandboxFiles.record);
    // Its memory is not in the backup, nor do any of its processes stand still here.
    const { standing: _, ...known } = JSON.parse(readFileSync(record, 'utf8')) as Record<string, unknown>;
    writeFileSync(record, JSON.stringify({ ...known, kept: 'filesystem' }), { mode: 0o600 });
  }
}

function linesOf(path: string): AsyncIterable<string> {
  return createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY });
}
