import { readFileSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { release } from 'node:os';
import { dirname, join } from 'node:path';
import { failedWriteCode } from '../../base/disk-room.ts';
import { AtollError } from '../../base/error.ts';
import { withoutPlaces } from '../../base/process/without-places.ts';
import { killIfThere } from '../../base/if-there.ts';
import { copyImage } from '../disks/copy-image.ts';
import { closeOneEndedConnections } from './connections.ts';
import { needsLinks } from './link-remaps.ts';
import { criuKilled, type CriuHost } from './criu.ts';
import type { CheckpointSource } from './checkpoint-source.ts';
import { type CheckpointOptions, dump, type Dumped, partialOf } from './dump.ts';
import { diskFile, writeManifest } from './manifest.ts';
import { completeSnapshot, writeOut, type Work } from './checksums.ts';
import { allowOtherSizes } from './volume-files.ts';

const cutTimeoutMs = 60_000;
/** For errors. */
const what = "the sandbox's disk";
const syncTimeoutMs = 10 * 60_000;

/**
 * Keeps the memory of a sandbox that is being paused. The disk is not copied: together with the snapshot it is the
 * whole sandbox, and must stay unchanged until the snapshot is restored or deleted. `alongside` begins when no process
 * runs any more, for other data that must be written out; `onComplete` is called when the snapshot is complete and no
 * process has ended yet. If one of them fails, as after any other failure, the sandbox runs on and nothing remains.
 * From then on the snapshot survives a crash of the platform, and after `makeDurable` also one of the host.
 *
 * With `then: 'end'` all processes have ended or are about to when this settles. With `then: 'freeze'` they are still
 * there and none has run since: if thawed, they continue as if nothing had happened, which makes the snapshot stale;
 * if killed, only the snapshot is left. Answers which of the two it is, because a sandbox that holds open deleted
 * files of its layers can only end. Errors: `unavailable` (it can't be kept, and why), `precondition` (it has too many
 * open files), `no_space`, `canceled`.
 */
export async function checkpointToPause(
  host: CriuHost,
  source: CheckpointSource,
  options: CheckpointOptions & { then: PauseEnd; alongside?: Work[]; onComplete(): Promise<void> },
): Promise<PauseEnd> {
  let complete = false;
  const pause = async (then: PauseEnd): Promise<PauseEnd> => {
    const commit = async (dumped: Dumped) => {
      if (then === 'freeze' && (await needsLinks(partialOf(options.directory)))) throw new OnlyByEnding();
      const alongside = [() => writeOut(host, partialOf(options.directory)), ...(options.alongside ?? [])];
      await finish(host, source, options, dumped, { alongside });
      // The kernel freezes them where CRIU leaves them, before their next own instruction.
      if (then === 'freeze') source.group.beginFreeze();
      try {
        requireTraced(source.pid);
        await options.onComplete();
        if (then === 'end') requireTraced(source.pid);
      } catch (error) {
        if (then === 'freeze') source.group.thaw();
        await discard(options.directory, error);
      }
      complete = true;
      // Peers outside see the end of their connections now, instead of only silence.
      if (then === 'end')
        await host.helper
          .spawn([host.helperBinary, 'cut', String(source.pid)], { timeoutMs: cutTimeoutMs })
          .catch(() => {});
    };
    try {
      await dump(host, source, options, {
        end: then === 'end',
        final: true,
        commit,
        follow: 'checksums and write-out',
      });
      if (then === 'freeze') await source.group.frozen();
      return then;
    } catch (error) {
      if (!complete) throw error;
      // The sandbox is paused, whatever went wrong since. The rest of its processes must not run: those that are not
      // frozen yet are about to be.
      for (const pid of source.group.processes()) killIfThere(pid);
      source.group.thaw();
      return 'end';
    }
  };
  return pause(options.then)
    .catch(error => {
      if (error instanceof OnlyByEnding) return pause('end');
      throw error;
    })
    .catch(error => discard(partialOf(options.directory), error));
}

/** What happens to the processes: they end, or stay frozen. */
type PauseEnd = 'end' | 'freeze';

class OnlyByEnding extends Error {}

/**
 * Keeps the memory and a copy of the disk of a sandbox that runs on, both from one moment of its life. It is frozen
 * meanwhile. The copy is part of the snapshot. With `diskCopy` the copy is made as that image, and the snapshot has
 * another copy if `isKept` says so once the image is there. Errors as for `checkpointToPause`.
 */
export async function checkpointAndRun(
  host: CriuHost,
  source: CheckpointSource,
  options: CheckpointOptions & { diskCopy?: { image: string; isKept(): boolean } },
): Promise<void> {
  const partial = partialOf(options.directory);
  const ownCopy = join(partial, diskFile);
  const { image, isKept } = options.diskCopy ?? { image: ownCopy, isKept: () => true };
  const work = async () => {
    const commit = () => copyDisk(host, source, image);
    const dumped = await dump(host, source, options, { end: false, final: false, commit, follow: 'checksums' });
    const disk = isKept();
    if (disk && image !== ownCopy) await copyImage(host.helper, { from: image, to: ownCopy, what });
    await finish(host, source, options, dumped, { disk });
  };
  await work().catch(error => discard(partial, error));
}

/**
 * Writes the memory of a sandbox that runs on into a directory, from one moment: for a later comparison, not for a
 * restore. It stands still meanwhile. Errors: `unavailable`, `no_space`.
 */
export async function draftMemory(host: CriuHost, source: CheckpointSource, options: CheckpointOptions): Promise<void> {
  const partial = partialOf(options.directory);
  try {
    await dump(host, source, options, { end: false, final: false, commit: async () => {} });
    renameSync(partial, options.directory);
  } catch (error) {
    await discard(partial, error);
  }
}

/**
 * Fails if CRIU does not hold the sandbox any more: what it has done since the images were made is not in them.
 * Source: proc_pid_status(5).
 */
function requireTraced(pid: number): void {
  if (!/^TracerPid:\t[1-9]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')))
    throw new AtollError('unavailable', 'CRIU has let the sandbox go', { detail: criuKilled });
}

/** Copies the disk of a frozen sandbox: first what its kernel holds is written to the image. */
async function copyDisk({ helper }: Pick<CriuHost, 'helper'>, source: CheckpointSource, to: string): Promise<void> {
  const argv = ['sync', '--file-system', source.diskMount];
  const { status, output } = await helper.spawn(argv, { timeoutMs: syncTimeoutMs });
  if (status !== 0)
    throw new AtollError(
      failedWriteCode(dirname(to)),
      `the sandbox's disk can't be written out: ${withoutPlaces(output)}`,
    );
  await copyImage(helper, { from: source.disk, to, what });
}

/** Gives the images their final form and name. `alongside` runs meanwhile. */
async function finish(
  host: CriuHost,
  { volumes }: CheckpointSource,
  options: CheckpointOptions,
  { mounts, checksums }: Dumped,
  { disk = false, alongside = [] }: { disk?: boolean; alongside?: Work[] },
): Promise<void> {
  const partial = partialOf(options.directory);
  await closeOneEndedConnections(join(partial, 'files.img'));
  await allowOtherSizes(join(partial, 'files.img'), volumes);
  const madeBy = { machine: process.arch, kernel: release(), criu: host.criu.version };
  const { facts } = options;
  writeManifest(partial, { version: 1, createdAtMs: Date.now(), madeBy, facts, memory: true, disk, mounts });
  await completeSnapshot(partial, options.directory, checksums, alongside);
}

async function discard(directory: string, error: unknown): Promise<never> {
  await rm(directory, { recursive: true, force: true });
  throw error;
}
