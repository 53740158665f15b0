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
 * Directories whose content says what runs now, e.g. which process has a lock: after a boot the operating system
 * expects them as installed. They are on the sandbox's disk, so that templates can have files in them.
 */
export const volatile = ['run'];

/** Next to the sandbox's files on its disk, where the sandbox can't reach it: holds what is to be removed. */
const discarded = 'discarded';
/** Less than a pause waits for the disk (keep/disk.ts). The next boot removes what is left. */
const removeTimeoutMs = 20_000;

/** What emptying volatile directories needs. */
export type VolatileParts = {
  layout: Layout;
  helper: Helper;
  helperBinary: string;
  /**
   * Bounds how many programs remove files of sandboxes at a time: they may take long, but not all of the disk's time.
   */
  removals: Semaphore;
  log: Log;
};

/**
 * Empties the volatile directories of a sandbox whose disk is mounted and not used by anything else: they are put
 * aside at once, and a program removes them while the sandbox runs, however many files are in them.
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
 * Moves a directory away and puts an empty one in its place. The content is a stranger's: a link in its place could
 * lead out of the disk.
 */
function putAside(directory: string, away: string): void {
  const facts = lstatSync(directory, { throwIfNoEntry: false });
  if (!facts?.isDirectory()) return;
  renameSync(directory, away);
  mkdirSync(directory);
  chownSync(directory, facts.uid, facts.gid);
  chmodSync(directory, facts.mode & 0o7777);
}
