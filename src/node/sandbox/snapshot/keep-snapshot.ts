import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Snapshot, TakeSnapshot } from '../../../protocol/node.ts';
import type { SandboxVolume } from '../../../protocol/volume.ts';
import { type Builder, builderFor } from '../../builder/builder.ts';
import { copyImage } from '../../disks/copy-image.ts';
import type { Disks } from '../../disks/disks.ts';
import { flatten } from '../../layers/flatten.ts';
import { layerLimits, stackedLayersMax } from '../../layers/limits.ts';
import { makeLayer } from '../../layers/make.ts';
import { platformFiles } from '../../layers/platform-files.ts';
import type { Layers } from '../../layers/store.ts';
import type { Layout } from '../../layout.ts';
import type { Helper } from '../../native/helper.ts';
import { checkpointAndRun } from '../../snapshot/checkpoint.ts';
import type { RestoreHost } from '../../snapshot/restore.ts';
import { makeDurable } from '../../snapshot/checksums.ts';
import type { Space } from '../../space/space.ts';
import {
  checkpointBytes,
  checkpointSource,
  explainCheckpoint,
  requireCheckpoints,
  type CheckpointSupport,
} from '../keep/checkpoint-support.ts';
import { syncDisk } from '../keep/disk.ts';
import type { Processes } from '../slot/processes.ts';
import { slotMountPoint } from '../slot/slot-disk.ts';
import { volatile } from '../start/empty-volatile.ts';
import { allocatedBytes } from '../../disks/allocated-bytes.ts';
import { mountDiskCopy, type DiskCopy } from './copy-disk.ts';
import { deleteSnapshot, snapshotOf, type SnapshotFacts } from './snapshot-store.ts';

/**
 * Up to this size, what a sandbox has written is also kept as a disk, and sandboxes that begin with its memory get a
 * copy: a file that a program has open then keeps its inode number (SQLite, for one, no longer writes to a database
 * that seems to be another file). Above it, all of them share the writes as a layer.
 */
const diskBytesMax = 256 * 1024 ** 2;
/** For errors. */
const what = "the sandbox's disk";

/** What keeping snapshots needs. */
export type SnapshotParts = {
  layout: Layout;
  helper: Helper;
  disks: Disks;
  layers: Layers;
  builder: Pick<Builder, 'run'>;
  space: Space;
  checkpoints: CheckpointSupport;
};

/** Something that runs in a slot. */
export type SnapshotSource = {
  processes: Pick<Processes, 'slot' | 'driver' | 'pid'>;
  /** The team that it belongs to; absent: none is known. */
  teamId?: string | undefined;
  /** The image of its disk. */
  disk: string;
  /** Layer digests, lowest first. */
  layers: string[];
  facts: Omit<SnapshotFacts, 'layers'>;
  volumes: SandboxVolume[];
};

/**
 * Keeps the present state of what runs in a slot; it is frozen briefly and runs on. Errors: those of
 * `NodeProtocol.snapshot`.
 */
export async function keepSnapshot(
  parts: SnapshotParts,
  { snapshotId, memory, transient }: Pick<TakeSnapshot, 'snapshotId' | 'memory' | 'transient'>,
  source: SnapshotSource,
  inTurn: (work: () => Promise<DiskCopy>) => Promise<DiskCopy> = work => work(),
): Promise<Omit<Snapshot, 'driver'>> {
  const { layout } = parts;
  const directory = snapshotOf(layout, snapshotId);
  const host = memory ? requireCheckpoints(parts.checkpoints, source.processes.driver) : null;
  mkdirSync(layout.snapshots, { recursive: true, mode: 0o700 });
  try {
    using room = new DisposableStack();
    await using copy = await inTurn(async () => {
      room.use(parts.space.reserve('the snapshot of a sandbox', await snapshotBytes(source, host)));
      return mountDiskCopy(parts, async image => {
        if (host === null) return copyFrozen(parts, source, image);
        await checkpoint(parts, host, source, image, directory);
      });
    });
    // Processes that continue find everything as they left it; a sandbox that boots gets the platform's files anew.
    const own = { ...parts, builder: builderFor(parts.builder, source.teamId) };
    const upper = await sealUpper(own, copy, host ? [] : [...platformFiles, ...volatile]);
    const layers = await flattened(own, upper === null ? source.layers : [...source.layers, upper]);
    if (host && !transient) await makeDurable(host, directory);
    return { layers, kept: host ? 'memory' : 'filesystem' };
  } catch (error) {
    await deleteSnapshot(layout, snapshotId);
    throw error;
  }
}

/** How much of the host's disk a snapshot takes at most while it is made. */
async function snapshotBytes(source: SnapshotSource, host: RestoreHost | null): Promise<number> {
  const diskBytes = allocatedBytes(source.disk);
  // What was written is copied, and becomes a layer.
  const copies = host && hasDisk(source, source.disk) ? 3 : 2;
  return copies * diskBytes + (host ? await checkpointBytes(host, source.processes, source) : 0);
}

/** Whether a snapshot with memory also keeps the disk, whose image this is. */
function hasDisk({ layers }: SnapshotSource, image: string): boolean {
  return allocatedBytes(image) <= diskBytesMax && layers.length + 1 < stackedLayersMax;
}

async function copyFrozen(parts: SnapshotParts, { processes, disk }: SnapshotSource, image: string): Promise<void> {
  const { slot, driver } = processes;
  await driver.freeze(slot);
  try {
    await syncDisk(parts, slot, disk);
    await copyImage(parts.helper, { from: disk, to: image, what });
  } finally {
    driver.thaw(slot);
  }
}

async function checkpoint(
  { layout, layers }: SnapshotParts,
  host: RestoreHost,
  source: SnapshotSource,
  image: string,
  directory: string,
): Promise<void> {
  const { processes, disk, facts, volumes, teamId } = source;
  const checkpointed = checkpointSource(processes, {
    disk,
    diskMount: slotMountPoint(layout, processes.slot),
    layers: await Promise.all(source.layers.map(digest => layers.mount(digest))),
    volumes: volumes.map(({ path }) => path),
    ...(teamId !== undefined && { teamId }),
  });
  try {
    await checkpointAndRun(host, checkpointed, {
      directory,
      name: `snapshot-${processes.slot.name}`,
      facts: { ...facts, layers: source.layers } satisfies SnapshotFacts,
      // The image itself is mounted next, and its file system may still write to it for any time.
      diskCopy: { image, isKept: () => hasDisk(source, image) },
    });
  } catch (error) {
    throw explainCheckpoint(error);
  }
}

/** Makes what was written a layer above those that the sandbox has; null if nothing was written. */
async function sealUpper(parts: SnapshotParts, { mountPoint }: DiskCopy, excluded: string[]): Promise<string | null> {
  return makeLayer(parts, {
    job: { kind: 'pack', excluded, marked: true, limits: layerLimits },
    upper: join(mountPoint, 'upper'),
  });
}

async function flattened(parts: SnapshotParts, layers: string[]): Promise<string[]> {
  if (layers.length < stackedLayersMax) return layers;
  const flat = await flatten(parts, layers, { limits: layerLimits });
  return flat === null ? [] : [flat];
}
