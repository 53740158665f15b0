import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError, messageOf } from '../../base/error.ts';
import { connectStore } from '../database/database.ts';
import type { Place } from '../installation/place.ts';
import { findExecution } from '../sandbox/store/read.ts';
import { layerFile, sandboxDirectory, sandboxFiles } from './places.ts';
import { pack, unpackInto } from './tar.ts';
import { volumesIn } from './volumes.ts';

/** Paused sandboxes of a backup, the layers that they are made from, and the sandboxes that it lacks. */
export type PackedSandboxes = {
  packed: string[];
  layers: Set<string>;
  leftOut: { sandboxId: string; reason: string }[];
};

/**
 * Packs the disks of the sandboxes that are paused in the backup's state. A sandbox that was resumed since is left out,
 * even where it is paused again: its files would be of a later execution than its row.
 */
export async function packSandboxes(
  { dataDir, database }: Place,
  staging: string,
  paused: readonly { sandboxId: string; executionId: string }[],
  signal?: AbortSignal,
): Promise<PackedSandboxes> {
  await using store = connectStore(database);
  const result: PackedSandboxes = { packed: [], layers: new Set(), leftOut: [] };
  mkdirSync(join(staging, 'sandboxes'));
  for (const sandbox of paused) {
    const { sandboxId } = sandbox;
    const file = join(staging, 'sandboxes', `${sandboxId}.tar`);
    try {
      const layers = await packSandbox(dataDir, sandboxId, file, signal);
      const now = await findExecution(store.db, sandbox);
      if (now?.state !== 'paused') throw new AtollError('conflict', 'it was resumed meanwhile');
      result.packed.push(sandboxId);
      for (const digest of layers) result.layers.add(layerFile(digest));
    } catch (error) {
      rmSync(file, { force: true });
      signal?.throwIfAborted();
      result.leftOut.push({ sandboxId, reason: messageOf(error) });
    }
  }
  return result;
}

/** Answers the layers that the sandbox is made from. */
async function packSandbox(
  dataDir: string,
  sandboxId: string,
  file: string,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const directory = sandboxDirectory(dataDir, sandboxId);
  const { state, image } = JSON.parse(readFileSync(join(directory, sandboxFiles.record), 'utf8')) as {
    state: string;
    image: { layers: string[] };
  };
  // Its disk was written before this record was.
  if (state !== 'paused') throw new AtollError('conflict', 'it runs');
  await pack(directory, file, { paths: Object.values(sandboxFiles), signal });
  return image.layers;
}

/**
 * Puts the paused sandboxes of an unpacked backup, with files but without memory, into a data directory that has its
 * volumes. Answers which: a sandbox whose volume is missing was ended while the backup was written, before the volume
 * was deleted.
 */
export async function restoreSandboxes(
  unpacked: string,
  dataDir: string,
  sandboxes: readonly string[],
  signal?: AbortSignal,
): Promise<string[]> {
  const there = new Set(volumesIn(dataDir));
  const restored: string[] = [];
  for (const sandboxId of sandboxes) {
    const directory = sandboxDirectory(dataDir, sandboxId);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    await unpackInto(directory, join(unpacked, 'sandboxes', `${sandboxId}.tar`), signal);
    const record = join(directory, sandboxFiles.record);
    const known = JSON.parse(readFileSync(record, 'utf8')) as { volumes?: { volumeId: string }[] };
    if (known.volumes?.some(({ volumeId }) => !there.has(volumeId))) {
      rmSync(directory, { recursive: true });
      continue;
    }
    // Its memory is not in the backup, and its frozen processes do not belong to this installation.
    writeFileSync(record, JSON.stringify({ ...known, kept: 'filesystem', frozen: null }), { mode: 0o600 });
    restored.push(sandboxId);
  }
  return restored;
}
