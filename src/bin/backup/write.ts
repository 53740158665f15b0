import { cpSync, existsSync, linkSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { recordLocalChange } from '../../api/app/audit.ts';
import { systemClock } from '../../api/app/clock.ts';
import { connectStore, openStore } from '../../api/store/database.ts';
import { dumpStore } from '../../api/store/dump.ts';
import { findExecution, sandboxesIn } from '../../api/store/sandbox-read.ts';
import { AtollError, messageOf } from '../../base/error.ts';
import { storeLocation } from '../accounts.ts';
import { requirePair } from '../installation/check.ts';
import type { Settings } from '../settings.ts';
import { writeManifest } from './manifest.ts';
import { layerFile, nodeFiles, plainFiles, sandboxDirectory, sandboxFiles } from './places.ts';
import { pack } from './tar.ts';
import { packVolumes } from './volumes.ts';

const linesAtOnce = 500;
const nothingPacked = { kept: [], leftOut: [], layers: new Set<string>() };

export type BackupReport = { file: string; bytes: number; layers: number; sandboxes: string[]; leftOut: { sandboxId: string; reason: string }[]; restlessVolumes: string[] };

/**
 * Writes everything that an installation needs to be there again into one file, while it may be running: it appears whole
 * or not at all. Throws `not_found` where there is no installation, `conflict` where the file is there already.
 */
export async function writeBackup(settings: Settings, account: string, file: string, options: { sandboxes: boolean }): Promise<BackupReport> {
  const { dataDir } = settings;
  if (!existsSync(join(dataDir, 'seed'))) throw new AtollError('not_found', `There is no installation in ${dataDir}. Set ATOLL_DATA_DIR to the directory of the one you mean.`);
  await requirePair(settings);
  if (existsSync(file)) throw new AtollError('conflict', `${file} is there already`);
  // On the file system of the installation, so that layers can be linked: then nobody deletes them under our hands.
  removeLeftovers(dataDir);
  const scratch = mkdtempSync(join(dataDir, `backup-${process.pid}-`));
  const staging = join(scratch, 'content');
  mkdirSync(staging);
  const partial = `${file}.partial`;
  try {
    for (const name of plainFiles) if (existsSync(join(dataDir, name))) cpSync(join(dataDir, name), join(staging, name), { recursive: true, preserveTimestamps: true, dereference: true });
    linkLayers(dataDir, staging);
    const ofTemplates = await writeDump(settings, staging, join(scratch, 'copy.sqlite'));
    const { kept, leftOut, layers: ofSandboxes } = options.sandboxes ? await packSandboxes(settings, staging) : nothingPacked;
    const layers = pickLayers(dataDir, staging, ofTemplates.union(ofSandboxes));
    for (const name of nodeFiles) if (existsSync(join(dataDir, 'node', name))) await pack(join(dataDir, 'node', name), join(staging, `${name}.tar`), { live: true });
    const restlessVolumes = await packVolumes(dataDir, staging);
    await writeManifest(staging, kept);
    mkdirSync(dirname(file), { recursive: true });
    // Layers are links that others have too: what tar calls a change is then one more link, or one fewer. Their bytes are summed.
    await pack(staging, partial, { live: true });
    await syncFile(partial);
    await tell(settings, account);
    renameSync(partial, file);
    return { file, bytes: statSync(file).size, layers, sandboxes: kept, leftOut, restlessVolumes };
  } finally {
    rmSync(partial, { force: true });
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Who has a backup has every secret in it: that one was made is told. */
async function tell(settings: Settings, account: string): Promise<void> {
  await using store = await openStore(storeLocation(settings));
  await recordLocalChange(store.db, { operation: 'cli.backup', account, atUs: systemClock()(), teamId: null }, { target: 'installation:this' });
}

function linkLayers(dataDir: string, staging: string): void {
  const [from, to] = [join(dataDir, 'node/layers'), join(staging, 'layers')];
  mkdirSync(to, { recursive: true });
  if (!existsSync(from)) return;
  for (const name of readdirSync(from)) {
    if (!name.endsWith('.erofs') || existsSync(join(to, name))) continue;
    try {
      linkSync(join(from, name), join(to, name));
    } catch (error) {
      // It was collected just now: if somebody needed it, that is found when they are picked.
      if (existsSync(join(from, name))) throw error;
    }
  }
}

/** Writes the state down and answers which layers its templates are made from. */
async function writeDump(settings: Settings, staging: string, scratch: string): Promise<Set<string>> {
  const layers = new Set<string>();
  const file = await open(join(staging, 'state.jsonl'), 'wx', 0o600);
  try {
    let lines: string[] = [];
    const flush = async () => {
      await file.write(lines.map(line => `${line}\n`).join(''));
      lines = [];
    };
    for await (const { line, table, row } of dumpStore(storeLocation(settings), scratch)) {
      if (table === 'builds' && row?.['status'] === 'ready') for (const digest of JSON.parse(String(row['layers_json'])) as string[]) layers.add(layerFile(digest));
      if (lines.push(line) >= linesAtOnce) await flush();
    }
    await flush();
  } finally {
    await file.close();
  }
  return layers;
}

/** Leaves the layers that something in the backup is made from. */
function pickLayers(dataDir: string, staging: string, needed: ReadonlySet<string>): number {
  linkLayers(dataDir, staging);
  const present = new Set(readdirSync(join(staging, 'layers')));
  for (const name of needed) if (!present.has(name)) throw new AtollError('unavailable', `The layer ${name} of a template is not in ${dataDir}; was it being deleted? Try again`);
  for (const name of present) if (!needed.has(name)) rmSync(join(staging, 'layers', name));
  return needed.size;
}

/** What backups of before that were killed have left. */
function removeLeftovers(dataDir: string): void {
  for (const name of readdirSync(dataDir)) {
    const [, pid] = /^backup-(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(dataDir, name), { recursive: true, force: true });
  }
}

type PackedSandboxes = { kept: string[]; layers: Set<string>; leftOut: BackupReport['leftOut'] };

/** Packs disks of paused sandboxes; of one that is resumed meanwhile, nothing. */
async function packSandboxes(settings: Settings, staging: string): Promise<PackedSandboxes> {
  await using store = connectStore(storeLocation(settings));
  const packed: PackedSandboxes = { kept: [], layers: new Set(), leftOut: [] };
  mkdirSync(join(staging, 'sandboxes'));
  for (const sandbox of await sandboxesIn(store.db, ['paused'])) {
    const { sandboxId } = sandbox;
    const file = join(staging, 'sandboxes', `${sandboxId}.tar`);
    try {
      const layers = await packSandbox(settings.dataDir, sandboxId, file);
      const now = await findExecution(store.db, sandbox);
      if (now?.state !== 'paused') throw new AtollError('conflict', 'it was resumed meanwhile');
      packed.kept.push(sandboxId);
      for (const digest of layers) packed.layers.add(layerFile(digest));
    } catch (error) {
      rmSync(file, { force: true });
      packed.leftOut.push({ sandboxId, reason: messageOf(error) });
    }
  }
  return packed;
}

/** Answers the layers that the sandbox is made from. */
async function packSandbox(dataDir: string, sandboxId: string, file: string): Promise<string[]> {
  const directory = sandboxDirectory(dataDir, sandboxId);
  const { state, image } = JSON.parse(readFileSync(join(directory, sandboxFiles.record), 'utf8')) as { state: string; image: { layers: string[] } };
  // What it had written was brought to its disk before this record was.
  if (state !== 'paused') throw new AtollError('conflict', 'it runs');
  await pack(directory, file, { paths: Object.values(sandboxFiles) });
  return image.layers;
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r');
  await file.sync();
  await file.close();
}
