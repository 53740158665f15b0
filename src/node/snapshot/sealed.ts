import { renameSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { Helper } from '../native/helper.ts';

/** Reading and hashing all of a sandbox's memory and disk, cold. */
const sealTimeoutMs = 10 * 60_000;

type Host = { helper: Helper; helperBinary: string };

/**
 * Writes checksums over the files of `from` and gives it its final name. When this settles it is on the disk; a crash at
 * any moment leaves it whole under its final name, or not at all. Errors: `no_space`, `internal`.
 */
export async function seal(host: Host, from: string, to: string): Promise<void> {
  const { status, output } = await host.helper.spawn([host.helperBinary, 'seal', from], { timeoutMs: sealTimeoutMs });
  if (status !== 0) throw new AtollError(/No space left/.test(output) ? 'no_space' : 'internal', `the snapshot could not be sealed: ${output.trim()}`);
  renameSync(from, to);
  const parent = await open(dirname(to), 'r');
  await parent.sync().finally(() => parent.close());
}

/** Fails with `unavailable` where a file of the snapshot is missing or changed. */
export async function verify(host: Host, directory: string): Promise<void> {
  const { status, output } = await host.helper.spawn([host.helperBinary, 'verify', directory], { timeoutMs: sealTimeoutMs });
  if (status !== 0) throw new AtollError('unavailable', `the snapshot is damaged: ${output.trim()}`, { detail: 'snapshot_damaged' });
}
