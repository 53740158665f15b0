import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { SharedWhileUsed } from '../../../base/concurrency/shared-while-used.ts';
import type { SandboxResources, TemplateImage } from '../../../protocol/node.ts';
import { agentAt } from '../../agent-client/copy.ts';
import { warmAgent } from '../../agent-client/call.ts';
import { connectToAgent } from '../../agent-client/listens.ts';
import type { Disks } from '../../disks/disks.ts';
import type { Driver } from '../../drivers/driver.ts';
import type { Layers } from '../../layers/store.ts';
import { diskFile } from '../../snapshot/manifest.ts';
import { openSnapshot, type OpenSnapshot, type RestoreHost } from '../../snapshot/restore.ts';
import { requireCheckpoints, type CheckpointSupport } from '../keep/checkpoint-support.ts';
import { snapshotOf, type SnapshotFacts } from '../snapshot/snapshot-store.ts';
import { makeDiskOfSnapshot } from './fork-disk.ts';
import { startRooted, type RootedParts } from './rooted.ts';
import { restoreProcesses, type RestoredParts } from './restored.ts';
import type { Started } from './standby.ts';

/** What a new sandbox begins with: a snapshot, or (null) an image that its driver wants from the start. */
export type Beginning = {
  driver: Driver;
  snapshotId: string | null;
  image: TemplateImage;
  resources: SandboxResources;
  /** Its disk names the build that it was made from; if false, it names the snapshot's. */
  recordsOrigin: boolean;
};

/** A snapshot that a new sandbox begins with. */
export type SnapshotBeginning = Beginning & { snapshotId: string };

/** What opening snapshots needs, for sandboxes that begin with them. */
export type BeginningParts = RestoredParts &
  RootedParts & {
    layers: Layers;
    disks: Disks;
    checkpoints: CheckpointSupport;
    /** By snapshot ID: sandboxes that begin with a snapshot while others do share one check of it. */
    openings: SharedWhileUsed<string, OpenSnapshot>;
  };

/** A snapshot that was found whole, until disposal, and the identity that its processes know. */
type Opened = Disposable & {
  host: RestoreHost;
  snapshot: OpenSnapshot;
  facts: Omit<SnapshotFacts, 'layers'>;
  /** Includes the layers below the snapshot's disk. */
  image: TemplateImage;
};

/** Opens the snapshot that a sandbox begins with. Errors: those of `openSnapshot`, and `precondition`. */
export async function openBeginning(
  { layout, checkpoints, openings }: BeginningParts,
  { driver, snapshotId, image }: SnapshotBeginning,
): Promise<Opened> {
  const host = requireCheckpoints(checkpoints, driver);
  const opening = await openings.use(snapshotId, () => openSnapshot(host, snapshotOf(layout, snapshotId)));
  const snapshot = opening.value;
  // Only takeSnapshot writes them.
  const { layers, ...facts } = snapshot.manifest.facts as SnapshotFacts;
  const hasDisk = existsSync(join(snapshot.directory, diskFile));
  const agentDir = agentAt(layout.agents, facts.agentDir);
  const end = () => opening[Symbol.dispose]();
  return {
    ...{ host, snapshot, facts: { ...facts, agentDir }, image: hasDisk ? { ...image, layers } : image },
    [Symbol.dispose]: end,
  };
}

/** Makes the disk of a sandbox that begins with a snapshot. */
export const makeBeginningsDisk = (
  parts: BeginningParts,
  { directory }: OpenSnapshot,
  { image: origin, resources: { diskMiB }, recordsOrigin }: Beginning,
  image: string,
): Promise<void> => makeDiskOfSnapshot(parts, directory, { image, diskMiB, origin: recordsOrigin ? origin : null });

/**
 * The processes of a snapshot in a slot, frozen, on a disk at the slot's place. They belong to nobody yet, and nothing
 * of theirs gets out.
 */
export type RestoredStandby = Started & { image: TemplateImage; agentDir: string };

/** Restores or starts a sandbox before anybody asks for it. A failure leaves nothing. */
export const standbyOf = (parts: BeginningParts, beginning: Beginning): Promise<RestoredStandby> => {
  const { snapshotId } = beginning;
  return snapshotId === null ? rootedStandby(parts, beginning) : restoreStandby(parts, { ...beginning, snapshotId });
};

async function rootedStandby(parts: BeginningParts, { driver, image, resources }: Beginning): Promise<RestoredStandby> {
  const { layers } = image;
  const points = await Promise.all(layers.map(digest => parts.layers.mount(digest)));
  const order = {
    sandboxId: 'standby',
    hostname: null,
    driver,
    layers,
    resources,
    network: null,
    volumes: [],
    disk: null,
  };
  const started = await startRooted(parts, order, points);
  const { processes, controlToken } = started;
  try {
    await warmAgent(await connectToAgent(processes.namespace, processes.ended), controlToken);
    await driver.freeze(processes.slot);
    return { ...started, image, agentDir: parts.agentDir };
  } catch (error) {
    await parts.processControl.release(processes);
    throw error;
  }
}

async function restoreStandby(parts: BeginningParts, beginning: SnapshotBeginning): Promise<RestoredStandby> {
  const { driver, resources } = beginning;
  using opened = await openBeginning(parts, beginning);
  const { host, snapshot, facts, image } = opened;
  const started = await restoreProcesses(parts, host, {
    ...facts,
    frozen: true,
    snapshot,
    driver,
    resources,
    disk: { make: path => makeBeginningsDisk(parts, snapshot, beginning, path) },
    points: await Promise.all(image.layers.map(digest => parts.layers.mount(digest))),
    volumes: [],
  });
  return { ...started, image, agentDir: facts.agentDir };
}
