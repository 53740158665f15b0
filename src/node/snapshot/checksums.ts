import { renameSync } from 'node:fs';

import { dirname } from 'node:path';
import { failedWriteCode } from '../../base/disk-room.ts';
import { AtollError } from '../../base/error.ts';
import { syncPath } from '../../base/sync.ts';
import type { Helper } from '../native/helper.ts';

/** Reading and hashing all of a sandbox's memory and disk, cold. */
const checksumsTimeoutMs = 10 * 60_000;

type Host = { helper: Helper; helperBinary: string };

/**
 * Writes checksums over the files of `from` and gives it its final name. A crash of the platform at any moment leaves
 * it whole under its final name, or not at all; what a crash of the host leaves, `verifyChecksums` finds out. Errors:
 * `no_space`, `internal`.
 */
export async function completeSnapshot(host: Host, from: string, to: string): Promise<void> {
  await writeChecksums(host, from);
  renameSync(from, to);
}

/** Writes the checksums, anew where a file was added. */
export async function writeChecksums(host: Host, directory: string): Promise<void> {
  const { status, output } = await host.helper.spawn([host.helperBinary, 'checksum', directory], {
    timeoutMs: checksumsTimeoutMs,
  });
  if (status !== 0)
    throw new AtollError(
      failedWriteCode(directory),
      `the checksums of the snapshot could not be written: ${output.trim()}`,
    );
}

/** Puts a snapshot on the host's disk: when this settles, it outlives a loss of power too. */
export async function makeDurable(host: Host, directory: string): Promise<void> {
  const { status, output } = await host.helper.spawn([host.helperBinary, 'flush', directory], {
    timeoutMs: checksumsTimeoutMs,
  });
  if (status !== 0)
    throw new AtollError(failedWriteCode(directory), `the snapshot could not be written out: ${output.trim()}`);
  await syncPath(dirname(directory));
}

/** Fails with `unavailable` where a file of the snapshot is missing or changed. */
export async function verifyChecksums(host: Host, directory: string): Promise<void> {
  const { status, output } = await host.helper.spawn([host.helperBinary, 'verify', directory], {
    timeoutMs: checksumsTimeoutMs,
  });
  if (status !== 0)
    throw new AtollError('unavailable', `the snapshot is damaged: ${output.trim()}`, { detail: 'snapshot_damaged' });
}
