import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Semaphore } from '../../../base/concurrency/semaphore.ts';
import { randomHex } from '../../../base/crypto/secret.ts';
import { pathInHelper, type Helper } from '../../native/helper.ts';
import type { Layout, Slot } from '../../layout.ts';
import { slotMountPoint } from '../slot/slot-disk.ts';

/**
 * Directories whose content says what runs now, e.g. which process has a lock: where the operating system boots it
 * finds them as they were installed. They are on the sandbox's disk, so that templates can have something in them.
 */
export const volatile = ['run'];

/** Beside the sandbox's files on its disk, where it can't reach: what is to be removed. */
const discarded = 'discarded';
/** Less than a pause waits for the disk (keep/disk.ts). What is left is removed at the next boot. */
const removeTimeoutMs = 20_000;

/** What volatile directories are emptied with. */
export type VolatileParts = {
  layout: Layout;
  helper: Helper;
  helperBinary: string;
  /** Bounds the programs at a time that remove what sandboxes have left: they take their time, and not all of it. */
  removals: Semaphore;
  log: Log;
};

/**
 * Empties the volatile directories of a sandbox whose disk is mounted and used by nothing else: they are put aside at
 * once, and removed by a program while the sandbox runs, however many files it has left there.
 */
export function emptyVolatile({ layout, helper, helperBinary, removals, log }: VolatileParts, slot: Slot): void {
  const mountPoint = slotMountPoint(layout, slot);
  const disk = pathInHelper({ helper }, mountPoint);
  mkdirSync(join(disk, discarded), { recursive: true, mode: 0o700 });
  for (const name of volatile) putAside(join(disk, 'upper', name), join(disk, discarded, randomHex(8)));
  if (readdirSync(join(disk, discarded)).length === 0) return;
  const remove = [helperBinary, 'remove-beneath', mountPoint, discarded];
  removals
    .run(() => helper.spawn(remove, { timeoutMs: removeTimeoutMs }))
    .catch(error =>
      log.warn('what a sandbox left in its volatile directories is not removed', {
        slot: slot.name,
        error: messageOf(error),
      }),
    );
}

/**
 * An empty directory takes the place of one that is moved away. The content is a stranger's: a link in its place leads
 * out of the disk.
 */
function putAside(directory: string, away: string): void {
  const facts = lstatSync(directory, { throwIfNoEntry: false });
  if (!facts?.isDirectory()) return;
  renameSync(directory, away);
  mkdirSync(directory);
  chownSync(directory, facts.uid, facts.gid);
  chmodSync(directory, facts.mode & 0o7777);
}
