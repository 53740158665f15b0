import { existsSync } from 'node:fs';
import { AtollError } from '../../../base/error.ts';
import { withoutPlaces } from '../../../base/process/without-places.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { syncPath } from '../../../base/sync.ts';
import type { Disks } from '../../disks/disks.ts';
import type { Layout, Slot } from '../../layout.ts';
import type { Helper } from '../../native/helper.ts';
import { mountedDisks } from '../../space/mounted-disks.ts';
import { slotMountPoint } from '../slot/slot-disk.ts';

/** Time to write out everything that a sandbox has written and the host's disk does not have yet. */
const syncTimeoutMs = 5 * 60_000;
/** How long a restore may keep a mount that it does not need. */
const releaseTimeoutMs = 30_000;
const releasePollMs = 5;
/** Time to read all metadata of a large disk, with cold caches. */
const repairTimeoutMs = 10 * 60_000;
/** From this status on, e2fsck has left something unrepaired: the status is a sum of bits. Source: e2fsck(8). */
const uncorrectedStatus = 4;
/** From this status on, a signal ended it. */
const endedStatus = 128;

/**
 * Writes what the kernel holds of a mounted disk into its image, and the image to the host's disk. Errors: `no_space`.
 */
export async function syncDisk(
  { helper, layout }: { helper: Helper; layout: Layout },
  slot: Slot,
  image: string,
): Promise<void> {
  const mountPoint = slotMountPoint(layout, slot);
  // A disk that has failed writes nothing any more: its image has all that there is.
  const disks = mountedDisks(helper.mountsPid, layout.mounts);
  if (disks.some(({ point, failed }) => failed && point === mountPoint)) return syncPath(image);
  const { status, output } = await helper.spawn(['sync', '--file-system', mountPoint], { timeoutMs: syncTimeoutMs });
  if (status !== 0)
    throw new AtollError(
      'no_space',
      `the sandbox's disk can't be written out: ${withoutPlaces(output) || `status ${status}`}`,
    );
  await syncPath(image);
}

/**
 * Waits until the kernel no longer writes to a disk's image after it was unmounted: a restore that runs at the time
 * holds the mount in a namespace of its own for a moment longer, and the file system writes once more when the last
 * mount goes.
 */
export async function unused(disks: Disks, image: string): Promise<void> {
  const deadline = performance.now() + releaseTimeoutMs;
  while (existsSync(image) && (await disks.used(image))) {
    if (performance.now() > deadline) throw new AtollError('internal', `the disk ${image} is still in use`);
    await Bun.sleep(releasePollMs);
  }
}

/**
 * Whether the file system of an unmounted disk is whole, after doing what a mount does: it replays the journal and
 * removes files without a name. Nothing else is changed. Errors: `internal` if this can't be found out.
 */
export async function isWhole({ helper }: { helper: Helper }, image: string): Promise<boolean> {
  for (const options of [
    ['-p', '-E', 'journal_only'],
    ['-f', '-n'],
  ]) {
    const check = ['e2fsck', ...options, image];
    const { status, output } = await helper.spawn(check, { timeoutMs: repairTimeoutMs, kind: 'check' });
    if (status < uncorrectedStatus) continue;
    if (status < endedStatus && status & uncorrectedStatus) return false;
    throw new AtollError('internal', `the disk ${image} can't be looked through: ${output.trim().slice(-300)}`, {
      detail: 'sandbox_state_damaged',
    });
  }
  return true;
}

/**
 * Repairs the file system of an unmounted disk if it has failed before: it keeps what the disk had by then. If the
 * file system considers itself whole, this reads one block, or with `all` all metadata: after a loss of power it does
 * not know of damage, because the disks of sandboxes are written without flushes. Errors: `internal` if it can't be
 * repaired.
 */
export async function repairDisk(
  { helper, log }: { helper: Helper; log: Log },
  image: string,
  { all = false } = {},
): Promise<void> {
  const kind = 'check';
  const check = ['e2fsck', ...(all ? ['-f'] : []), '-p', image];
  const { status, output } = await helper.spawn(check, { timeoutMs: repairTimeoutMs, kind });
  if (status < uncorrectedStatus) return;
  log.warn('the disk of a sandbox is repaired', { image, output: output.trim().slice(-500) });
  const thorough = await helper.spawn(['e2fsck', '-f', '-y', image], { timeoutMs: repairTimeoutMs, kind });
  if (thorough.status >= uncorrectedStatus)
    throw new AtollError('internal', `the disk ${image} can't be repaired: ${thorough.output.trim().slice(-300)}`, {
      detail: 'sandbox_state_damaged',
    });
}
