import { renameSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { Helper } from '../native/helper.ts';

/** Reading and hashing all of a sandbox's memory and disk, cold. */
const sealTimeoutMs = 10 * 60_000;

type Host = { helper: Helper; helperBinary: string };

/**
 * Writes checksums over the files of `from` and gives it its final name. A crash of the platform at any moment leaves it
 * whole under its final name, or not at all; what a crash of the host leaves, `verify` finds out. Errors: `no_space`, `internal`.
 */
export async function seal(host: Host, from: string, to: string): Promise<void> {
  await sealAgain(host, from);
  renameSync(from, to);
}

/** Writes the checksums anew, after a file was added. */
export async function sealAgain(host: Host, directory: string): Promise<void> {
  const { status, output } = await host.helper.spawn([host.helperBinary, 'checksum', directory], { timeoutMs: sealTimeoutMs });
  if (status !== 0) throw new AtollError(/No space left/.test(output) ? 'no_space' : 'internal', `the snapshot could not be sealed: ${output.trim()}`);
}

/** Puts a snapshot on the host's disk: when this settles, it outlives a loss of power too. */
export async function makeDurable(host: Host, directory: string): Promise<void> {
  const { status, output } = await host.helper.spawn([host.helperBinary, 'flush', directory], { timeoutMs: sealTimeoutMs });
  if (status !== 0) throw new AtollError(/No space left/.test(output) ? 'no_space' : 'internal', `the snapshot could not be written out: ${output.trim()}`);
  const parent = await open(dirname(directory), 'r');
  await parent.sync().finally(() => parent.close());
}

/** Fails with `unavailable` where a file of the snapshot is missing or changed. */
export async function verify(host: Host, directory: string): Promise<void> {
  const { status, output } = await host.helper.spawn([host.helperBinary, 'verify', directory], { timeoutMs: sealTimeoutMs });
  if (status !== 0) throw new AtollError('unavailable', `the snapshot is damaged: ${output.trim()}`, { detail: 'snapshot_damaged' });
}
