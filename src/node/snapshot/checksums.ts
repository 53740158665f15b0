import { renameSync } from 'node:fs';

import { dirname } from 'node:path';
import { failedWriteCode } from '../../base/disk-room.ts';
import { forEachParallel } from '../../base/concurrency/parallel.ts';
import { AtollError } from '../../base/error.ts';
import { withoutPlaces } from '../../base/process/without-places.ts';
import { syncPath } from '../../base/sync.ts';
import type { Helper } from '../native/helper.ts';
import type { ProgramKind } from '../native/program-places.ts';

/** Time to read and hash all of a sandbox's memory and disk, with cold caches. */
const checksumsTimeoutMs = 10 * 60_000;

/** The file with the checksums of the files next to it. */
export const checksumsFile = 'checksums';

/** The file with the checksums of memory, piece by piece, if there is memory (native/snapshot-hash.c). */
export const memorySumsFile = 'memory-sums';

const sums = [checksumsFile, `${checksumsFile}.partial`, memorySumsFile];

/** Whether a file holds checksums, complete or not: it stays where it was made. */
export const isChecksums = (name: string) => sums.includes(name);

/** Work that is done beside other work. */
export type Work = () => Promise<void>;

type Host = { helper: Helper; helperBinary: string };

/** What happens to images while they are written: only checksums, or writing them out to the host's disk as well. */
export type Follow = 'checksums' | 'checksums and write-out';

/**
 * Makes checksums over the files of a directory, those of memory while CRIU writes it: nearly all is done before the
 * sandbox has to stand still for it. To be called before CRIU begins. Settles when there is a manifest and all
 * checksums are written; fails if the directory is removed. Errors: `no_space`, `internal`.
 */
export async function followImages(host: Host, directory: string, follow: Follow): Promise<void> {
  const more = follow === 'checksums' ? [] : ['write-out'];
  await checksumsBy(host, directory, ['follow', directory, ...more], 'follow');
}

/**
 * Waits for the checksums over the files of `from` and gives it its final name. After a crash of the platform at any
 * moment it is either complete under its final name or not there at all; `verifyChecksums` finds out what a crash of
 * the host has left. `alongside` runs meanwhile, and has succeeded once the name is there. Errors: those of
 * `checksums` and of `alongside`.
 */
export async function completeSnapshot(
  from: string,
  to: string,
  checksums: Promise<void>,
  alongside: readonly Work[] = [],
): Promise<void> {
  const work = [() => checksums, ...alongside];
  await forEachParallel(work, work.length, part => part());
  renameSync(from, to);
}

/** Writes the checksums, again after a file was added. */
export async function writeChecksums(host: Host, directory: string): Promise<void> {
  await checksumsBy(host, directory, ['checksum', directory], 'long');
}

async function checksumsBy(host: Host, directory: string, argv: string[], kind: ProgramKind): Promise<void> {
  const { status, output } = await host.helper.spawn([host.helperBinary, ...argv], {
    timeoutMs: checksumsTimeoutMs,
    kind,
  });
  if (status !== 0)
    throw new AtollError(
      failedWriteCode(directory),
      `the checksums of the snapshot could not be written: ${withoutPlaces(output)}`,
    );
}

/**
 * Puts a snapshot on the host's disk: after this it survives a loss of power, too. `written`: everything but its
 * checksums and its name is already there.
 */
export async function makeDurable(
  host: Host,
  directory: string,
  { written = false }: { written?: boolean } = {},
): Promise<void> {
  await writeOut(host, directory, written ? [checksumsFile, memorySumsFile] : []);
  await syncPath(dirname(directory));
}

/** Puts the files of a directory on the host's disk, or only the named ones. */
export async function writeOut(host: Host, directory: string, names: string[] = []): Promise<void> {
  const { status, output } = await host.helper.spawn([host.helperBinary, 'flush', directory, ...names], {
    timeoutMs: checksumsTimeoutMs,
  });
  if (status !== 0)
    throw new AtollError(failedWriteCode(directory), `the snapshot could not be written out: ${withoutPlaces(output)}`);
}

/** The memory of the processes, or everything else: what CRIU takes decisions from, and the disk. */
type SnapshotPart = 'memory' | 'rest';

/** Fails with `unavailable` if a file of that part of the snapshot is missing or changed. */
export async function verifyChecksums(host: Host, directory: string, part: SnapshotPart): Promise<void> {
  const { status, output } = await host.helper.spawn([host.helperBinary, 'verify', directory, part], {
    timeoutMs: checksumsTimeoutMs,
  });
  if (status !== 0) throw damaged(output);
}

/** The error for a snapshot, from the helper's words about the damage. */
export function damaged(output: string): AtollError {
  return new AtollError('unavailable', `the snapshot is damaged: ${withoutPlaces(output)}`, {
    detail: 'snapshot_damaged',
  });
}
