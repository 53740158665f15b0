import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { Snapshot, TakeSnapshot } from '../../protocol/node.ts';
import type { SandboxVolume } from '../../protocol/volume.ts';
import { makeLayer } from '../builds/make-layer.ts';
import { openView } from '../builds/view.ts';
import type { NodeContext, Running } from '../context.ts';
import { slotOf, type Slot } from '../layout.ts';
import { platformFiles } from '../rootfs/platform-files.ts';
import { checkpointAndRun } from '../snapshot/checkpoint.ts';
import { diskFile, hasManifest, readManifest } from '../snapshot/manifest.ts';
import { makeDurable, sealAgain } from '../snapshot/sealed.ts';
import { volatile } from './empty-volatile.ts';
import { inTurn } from './in-turn.ts';
import { syncDisk } from './kept.ts';
import { checkpointSource, explainCheckpoint, requireMemory } from './memory.ts';
import { volumesOf } from './mount-volumes.ts';
import { runningOf } from './update-network.ts';

const copyTimeoutMs = 10 * 60_000;
/**
 * Up to this size what a sandbox has written is also kept as its disk, and those that begin with its memory get a copy: a file
 * that a program has open keeps its inode number (SQLite, for one, writes no more to a database that seems to be another file).
 * More is shared by all of them as a layer.
 */
const diskBytesMax = 256 * 1024 ** 2;
/** Of one layer. */
const layerLimits = { bytesMax: 20 * 2 ** 30, inodesMax: 1_000_000 };
/** From here on a snapshot puts its layers together into one: a sandbox's root takes at most 128, and snapshots of snapshots add to them. */
const layersMax = 64;

/** What must be known of a snapshot's memory beside its files. */
export type SnapshotFacts = {
  agentDir: string;
  bootId: string;
  controlToken: string;
  /** What its root was made of, beneath its disk. */
  layers: string[];
};

/** Where a snapshot's memory is. */
export function snapshotOf(node: NodeContext, snapshotId: string): string {
  if (!/^[0-9a-f-]{36}$/.test(snapshotId)) throw new AtollError('invalid', `${snapshotId} is not a snapshot's ID`);
  return join(node.layout.snapshots, snapshotId);
}

/** Keeps what a running sandbox is at this moment. */
export async function takeSnapshot(node: NodeContext, request: TakeSnapshot): Promise<Snapshot> {
  const { driver = 'crun' } = runningOf(node, request).record;
  if (request.memory) requireMemory(node, driver);
  const snapshot = await keepSnapshot(node, request, stands => inTurn(runningOf(node, request), () => stands(sourceOf(node, runningOf(node, request)))));
  return { ...snapshot, driver };
}

/** Something that runs in a slot. */
export type SnapshotSource = {
  slot: Slot;
  pid: number;
  /** The image of its disk. */
  disk: string;
  layers: string[];
  facts: Omit<SnapshotFacts, 'layers'>;
  volumes?: SandboxVolume[];
};

function sourceOf(node: NodeContext, { record }: Running): SnapshotSource {
  const { slot, pid, sandboxId, agentDir, bootId, controlToken, image } = record;
  const facts = { agentDir, bootId, controlToken };
  return { slot: slotOf(node.layout.installation, slot), pid, disk: node.records.diskOf(sandboxId), layers: image.layers, facts, ...volumesOf(record) };
}

/** Keeps what runs in a slot. `whileItsTurn` calls the function that it is given when nothing else changes the source. Errors as for `takeSnapshot`. */
export async function keepSnapshot(
  node: NodeContext,
  { snapshotId, memory }: Pick<TakeSnapshot, 'snapshotId' | 'memory'>,
  whileItsTurn: (take: (source: SnapshotSource) => Promise<DiskCopy>) => Promise<DiskCopy>,
): Promise<Omit<Snapshot, 'driver'>> {
  const directory = snapshotOf(node, snapshotId);
  if (memory) requireMemory(node);
  const take = memory ? checkpoint : copyFrozen;
  mkdirSync(node.layout.snapshots, { recursive: true, mode: 0o700 });
  try {
    await using copy = await whileItsTurn(source => copyDisk(node, source, async image => {
      await take(node, source, image, directory);
      const isSmall = allocatedBytes(image) <= diskBytesMax && source.layers.length + 1 < layersMax;
      if (memory && isSmall) await keepDisk(node, image, directory);
    }));
    // Processes that go on find everything as they left it; a sandbox that boots is given the platform's files anew.
    const upper = await sealUpper(node, copy, memory ? [] : [...platformFiles, ...volatile]);
    const layers = await flattened(node, upper === null ? copy.below : [...copy.below, upper]);
    if (memory) await makeDurable(requireMemory(node), directory);
    return { layers, kept: memory ? 'memory' : 'filesystem' };
  } catch (error) {
    await deleteSnapshot(node, snapshotId);
    throw error;
  }
}

export async function deleteSnapshot(node: NodeContext, snapshotId: string): Promise<void> {
  const directory = snapshotOf(node, snapshotId);
  if (!existsSync(directory)) return;
  // By its name it is whole at any time: what a crash leaves of the rest is nothing that is taken for a snapshot.
  const doomed = `${directory}.deleting`;
  rmSync(doomed, { recursive: true, force: true });
  renameSync(directory, doomed);
  await rm(doomed, { recursive: true, force: true });
}

export function listSnapshots(node: NodeContext): { snapshotId: string; takenAtMs: number }[] {
  const { snapshots } = node.layout;
  if (!existsSync(snapshots)) return [];
  return readdirSync(snapshots).flatMap(name => {
    if (!/^[0-9a-f-]{36}$/.test(name)) return [];
    return [{ snapshotId: name, takenAtMs: readManifest(join(snapshots, name)).createdAtMs }];
  });
}

/** Removes what crashes have left of snapshots that were being taken or deleted. */
export function forgetPartialSnapshots(node: NodeContext): void {
  const { snapshots } = node.layout;
  if (!existsSync(snapshots)) return;
  for (const name of readdirSync(snapshots)) {
    if (!/^[0-9a-f-]{36}$/.test(name) || !hasManifest(join(snapshots, name))) rmSync(join(snapshots, name), { recursive: true, force: true });
  }
}

type DiskCopy = AsyncDisposable & { mountPoint: string; below: string[] };

/** A mounted copy of a sandbox's disk from one moment: `take` makes the image, while the sandbox stands still. */
async function copyDisk(node: NodeContext, source: SnapshotSource, take: (image: string) => Promise<void>): Promise<DiskCopy> {
  const directory = mkdtempSync(join(node.layout.snapshots, 'copying-'));
  const image = join(directory, 'disk.img');
  await using undo = new AsyncDisposableStack();
  undo.defer(() => rmSync(directory, { recursive: true, force: true }));
  await take(image);
  const mountPoint = mkdtempSync(join(node.layout.mounts, 'snapshot-'));
  undo.defer(() => node.disks.close(mountPoint));
  await node.disks.open(image, mountPoint);
  const disposal = undo.move();
  return { mountPoint, below: source.layers, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}

async function copyFrozen(node: NodeContext, { slot, disk }: SnapshotSource, image: string): Promise<void> {
  await node.driver.freeze(slot);
  try {
    await syncDisk(node, slot, disk);
    await copyImage(node, disk, image);
  } finally {
    node.driver.thaw(slot);
  }
}

async function checkpoint(node: NodeContext, { slot, facts, ...source }: SnapshotSource, image: string, directory: string): Promise<void> {
  const checkpointed = await checkpointSource(node, slot, source);
  try {
    await checkpointAndRun(requireMemory(node), checkpointed, { directory, name: `snapshot-${slot.name}`, facts: { ...facts, layers: source.layers } satisfies SnapshotFacts, diskCopy: image });
  } catch (error) {
    throw explainCheckpoint(error);
  }
}

/** Puts a copy of the image into the snapshot: the image itself is mounted next, and its file system writes to it for as long as it likes. */
async function keepDisk(node: NodeContext, image: string, directory: string): Promise<void> {
  await copyImage(node, image, join(directory, diskFile));
  await sealAgain(requireMemory(node), directory);
}

async function copyImage(node: NodeContext, from: string, to: string): Promise<void> {
  const { status, output } = await node.helper.spawn(['cp', '--reflink=auto', '--sparse=auto', from, to], { timeoutMs: copyTimeoutMs });
  if (status !== 0) throw new AtollError(/No space left/.test(output) ? 'no_space' : 'internal', `the sandbox's disk can't be copied: ${output.trim()}`);
}

function allocatedBytes(file: string): number {
  return statSync(file).blocks * 512;
}

/** What was written becomes a layer above those that the sandbox has; null where nothing was. */
async function sealUpper(node: NodeContext, { mountPoint }: DiskCopy, excluded: string[]): Promise<string | null> {
  return makeLayer(node, { job: { kind: 'seal', excluded, marked: true, limits: layerLimits }, upper: join(mountPoint, 'upper') });
}

async function flattened(node: NodeContext, layers: string[]): Promise<string[]> {
  if (layers.length < layersMax) return layers;
  await using view = await openView(node, layers);
  const flat = await makeLayer(node, { job: { kind: 'seal', excluded: [], marked: false, limits: layerLimits }, upper: view.path });
  return flat === null ? [] : [flat];
}
