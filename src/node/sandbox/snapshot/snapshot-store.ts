import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import type { Layout } from '../../layout.ts';
import { hasManifest, readManifestIfWhole } from '../../snapshot/manifest.ts';

/** What must be known of a snapshot's memory in addition to its files. */
export type SnapshotFacts = {
  agentDir: string;
  bootId: string;
  controlToken: string;
  /** The layers of its root, below its disk. */
  layers: string[];
};

const snapshotName = /^[0-9a-f-]{36}$/;

/** Where a snapshot's memory is. Errors: `invalid`. */
export function snapshotOf({ snapshots }: Pick<Layout, 'snapshots'>, snapshotId: string): string {
  if (!snapshotName.test(snapshotId)) throw new AtollError('invalid', `${snapshotId} is not a snapshot's ID`);
  return join(snapshots, snapshotId);
}

/** Deletes the memory of a snapshot. One that is not here is already gone. */
export async function deleteSnapshot(layout: Pick<Layout, 'snapshots'>, snapshotId: string): Promise<void> {
  const directory = snapshotOf(layout, snapshotId);
  if (!existsSync(directory)) return;
  // Under its name it is always complete: what a crash leaves of the deletion can't be taken for a snapshot.
  const doomed = `${directory}.deleting`;
  await rm(doomed, { recursive: true, force: true });
  renameSync(directory, doomed);
  await rm(doomed, { recursive: true, force: true });
}

/** The snapshots with memory on the node, including damaged ones, and when they were taken. */
export function listSnapshots({ snapshots }: Pick<Layout, 'snapshots'>): { snapshotId: string; takenAtMs: number }[] {
  if (!existsSync(snapshots)) return [];
  return readdirSync(snapshots).flatMap(name => {
    if (!snapshotName.test(name)) return [];
    const directory = join(snapshots, name);
    return [
      { snapshotId: name, takenAtMs: readManifestIfWhole(directory)?.createdAtMs ?? statSync(directory).mtimeMs },
    ];
  });
}

/** Removes what crashes have left of snapshots that were being taken or deleted. */
export function forgetPartialSnapshots({ snapshots }: Pick<Layout, 'snapshots'>): void {
  if (!existsSync(snapshots)) return;
  for (const name of readdirSync(snapshots)) {
    if (!snapshotName.test(name) || !hasManifest(join(snapshots, name)))
      rmSync(join(snapshots, name), { recursive: true, force: true });
  }
}
