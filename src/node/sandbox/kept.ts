import { existsSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { NodeContext } from '../context.ts';
import type { Slot } from '../layout.ts';
import { mountedDisks } from '../space/mounted-disks.ts';
import { slotMountPoint } from './slot-disk.ts';

/** Writing out all that a sandbox has written and the host's disk has not taken yet. */
const syncTimeoutMs = 5 * 60_000;
/** Reading all that says where things are on a large disk, cold. */
const repairTimeoutMs = 10 * 60_000;
/** From here on, e2fsck has left something as it was. Source: e2fsck(8). */
const uncorrectedStatus = 4;
/** Reading and hashing a whole disk, cold. */
const sealTimeoutMs = 10 * 60_000;
/** How long a restore may keep a mount that it does not need. */
const releaseTimeoutMs = 30_000;
const releasePollMs = 5;
/** Written by the helper's `seal` over the files beside it. */
const checksums = 'checksums';

/** Writes what the kernel holds of a mounted disk into its image, and the image to the host's disk. Errors: `no_space`. */
export async function syncDisk(node: NodeContext, slot: Slot, image: string): Promise<void> {
  // One that has given up writes nothing any more: what is in the image is all that there is.
  if (mountedDisks(node.helper.mountsPid, node.layout.mounts).some(({ point, failed }) => failed && point === slotMountPoint(node, slot))) return syncPath(image);
  const { status, output } = await node.helper.spawn(['sync', '--file-system', slotMountPoint(node, slot)], { timeoutMs: syncTimeoutMs });
  if (status !== 0) throw new AtollError('no_space', `the sandbox's disk can't be written out: ${output.trim() || `status ${status}`}`);
  await syncPath(image);
}

/**
 * Mends the file system of a disk that is mounted nowhere, where it has given up before: what it had on the disk by then is what it
 * has. Of one that is whole it reads a block. Errors: `internal` where it can't be mended.
 */
export async function repairDisk(node: NodeContext, image: string): Promise<void> {
  const { status, output } = await node.helper.spawn(['e2fsck', '-p', image], { timeoutMs: repairTimeoutMs });
  if (status < uncorrectedStatus) return;
  node.log.warn('the disk of a sandbox is mended', { image, output: output.trim().slice(-500) });
  const thorough = await node.helper.spawn(['e2fsck', '-f', '-y', image], { timeoutMs: repairTimeoutMs });
  if (thorough.status >= uncorrectedStatus) throw new AtollError('internal', `the disk ${image} can't be mended: ${thorough.output.trim().slice(-300)}`, { detail: 'sandbox_state_damaged' });
}

/** Writes checksums over what a paused sandbox keeps; all of it is on the host's disk when this settles. */
export async function sealKept(node: NodeContext, sandboxId: string): Promise<void> {
  await released(node, node.records.diskOf(sandboxId));
  const { status, output } = await run(node, 'seal', sandboxId);
  if (status !== 0) throw new AtollError('internal', `what a paused sandbox keeps could not be sealed: ${output.trim()}`);
}

/** Fails with `internal` where something that a paused sandbox keeps is missing or changed. */
export async function verifyKept(node: NodeContext, sandboxId: string): Promise<void> {
  const { status, output } = await run(node, 'verify', sandboxId);
  if (status !== 0) throw new AtollError('internal', `what sandbox ${sandboxId} has kept is damaged: ${output.trim()}`, { detail: 'sandbox_state_damaged' });
}

/**
 * Waits until the kernel writes no more to a disk's image that was unmounted: a restore that runs at the time has the mount in a
 * namespace of its own for a moment longer, and the file system writes once more when the last one goes.
 */
async function released(node: NodeContext, image: string): Promise<void> {
  const deadline = performance.now() + releaseTimeoutMs;
  while (existsSync(image) && (await node.disks.used(image))) {
    if (performance.now() > deadline) throw new AtollError('internal', `the disk ${image} is still in use`);
    await Bun.sleep(releasePollMs);
  }
}

export function isSealed(node: NodeContext, sandboxId: string): boolean {
  return existsSync(join(node.records.keptOf(sandboxId), checksums));
}

/** Before anything is changed of what was kept: a crash from here on must not let it pass for damaged. */
export async function unsealKept(node: NodeContext, sandboxId: string): Promise<void> {
  const kept = node.records.keptOf(sandboxId);
  rmSync(join(kept, checksums), { force: true });
  await syncPath(kept);
}

function run(node: NodeContext, program: 'seal' | 'verify', sandboxId: string) {
  return node.helper.spawn([node.helperBinary, program, node.records.keptOf(sandboxId)], { timeoutMs: sealTimeoutMs });
}

async function syncPath(path: string): Promise<void> {
  const file = await open(path, 'r');
  await file.sync().finally(() => file.close());
}
