import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { closeOneEndedConnections } from './connections.ts';
import { needsLinks } from './link-remaps.ts';
import { criuKilled, runCriu, type CriuHost } from './criu.ts';
import { externalOption, sandboxMounts, type SandboxMount } from './mounts.ts';
import { diskFile, writeManifest, type Manifest } from './manifest.ts';
import { seal } from './sealed.ts';
import { allowOtherSizes } from './volume-files.ts';

/** A sandbox that runs, or stands still. */
export type CheckpointSource = {
  /** Its first process, in the host's numbers. */
  pid: number;
  group: {
    /** Settles when every process stands still. */
    freeze(): Promise<void>;
    /** Begins it, for processes that stand still for another reason yet. */
    hold(): void;
    thaw(): void;
    /** All processes, in the host's numbers. */
    processes(): number[];
  };
  /** Its disk's image, and where that is mounted in the helper's namespace. */
  disk: string;
  diskMount: string;
  /** Mount points of its layers in the helper's namespace, lowest first. */
  layers: string[];
  /** Mount points of its volumes, as it sees them. */
  volumes: string[];
};

export type CheckpointOptions = {
  /** Where the snapshot will be. Its parent exists, on the file system of the disk; it does not itself. */
  directory: string;
  /** Names the files of this run; no other run at the time has it. */
  name: string;
  /** The caller's own facts, handed back when the snapshot is opened. */
  facts: Record<string, unknown>;
  /** When aborted before the snapshot is complete, the sandbox is left as it was and nothing remains. */
  signal?: AbortSignal;
};

/** Files of this size are kept though they have no name any more: what is open and deleted is in the checkpoint. */
const deletedFileBytesMax = 4 * 1024 ** 3;
/** What can't be checkpointed for a moment is tried again; the sandbox runs in between. */
const attemptsMax = 4;
const retryDelayMs = 50;
const watchTimeoutMs = 60_000;
const copyTimeoutMs = 10 * 60_000;

/** Options that a dump and its restores share. */
export const sharedOptions = ['empty-ns net', 'tcp-established', 'manage-cgroups=ignore', 'file-locks'];

/**
 * Keeps the memory of a sandbox that pauses. The disk is not copied: with the snapshot it is the whole sandbox, and must
 * stay as it is until the snapshot is restored or deleted. `onComplete` is called when the snapshot is complete and no
 * process has ended yet; if it fails, as after any other failure, the sandbox runs on and nothing remains. The snapshot
 * survives a crash of the platform from then on, and one of the host after `makeDurable`.
 *
 * With `then: 'end'` all processes have ended or are about to when this settles. With `then: 'stand-still'` they are
 * still there and none has run since: let go, they continue as if nothing had been, which makes the snapshot stale;
 * killed, the snapshot is what is left. Answers which it is, as a sandbox that holds open deleted files of its layers can
 * only end. Errors: `unavailable` (it can't be kept, and why), `no_space`, `canceled`.
 */
export async function checkpointToPause(
  host: CriuHost,
  source: CheckpointSource,
  options: CheckpointOptions & { then: PauseEnd; onComplete(): Promise<void> },
): Promise<PauseEnd> {
  let complete = false;
  const pause = async (then: PauseEnd): Promise<PauseEnd> => {
    const commit = async (mounts: SandboxMount[]) => {
      if (then === 'stand-still' && needsLinks(partialOf(options.directory))) throw new OnlyByEnding();
      await finish(host, source, options, { memory: true, disk: false, mounts });
      // The kernel stops them where CRIU leaves them, before the next instruction of their own.
      if (then === 'stand-still') source.group.hold();
      try {
        requireTraced(source.pid);
        await options.onComplete();
        if (then === 'end') requireTraced(source.pid);
      } catch (error) {
        if (then === 'stand-still') source.group.thaw();
        discard(options.directory, error);
      }
      complete = true;
      // Whoever is connected from outside hears of the end now, and not by a silence.
      if (then === 'end') await host.helper.spawn([host.helperBinary, 'cut', String(source.pid)], { timeoutMs: watchTimeoutMs }).catch(() => {});
    };
    try {
      await dump(host, source, options, { end: then === 'end', commit });
      if (then === 'stand-still') await source.group.freeze();
      return then;
    } catch (error) {
      if (!complete) {
        await undoKilled(host, source, options.name, error);
        throw error;
      }
      // The sandbox is paused, whatever went wrong since. What is left of its processes must not run.
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

export type PauseEnd = 'end' | 'stand-still';

class OnlyByEnding extends Error {}

/**
 * Keeps the memory and a copy of the disk of a sandbox that runs on, from one moment of its life. It stands still
 * meanwhile. The copy is part of the snapshot, unless `diskCopy` is another place for it. Errors as for `checkpointToPause`.
 */
export async function checkpointAndRun(host: CriuHost, source: CheckpointSource, options: CheckpointOptions & { diskCopy?: string }): Promise<void> {
  const partial = partialOf(options.directory);
  const { diskCopy = join(partial, diskFile) } = options;
  const work = async () => {
    const mounts = await dump(host, source, options, { end: false, commit: () => copyDisk(host, source, diskCopy) });
    await finish(host, source, options, { memory: true, disk: options.diskCopy === undefined, mounts });
  };
  await work().catch(async error => {
    await undoKilled(host, source, options.name, error);
    discard(partial, error);
  });
}

type Dump = {
  /** Whether the processes end after `commit`. */
  end: boolean;
  /** Called when the images are complete and the processes still there. If it fails they run on. */
  commit(mounts: SandboxMount[]): Promise<void>;
};

/** Answers the sandbox's external mounts. */
async function dump(host: CriuHost, source: CheckpointSource, options: CheckpointOptions, { end, commit }: Dump): Promise<SandboxMount[]> {
  const { pid } = source;
  const partial = partialOf(options.directory);
  for (let attempt = 1; ; attempt++) {
    options.signal?.throwIfAborted();
    makePartial(partial);
    await watchPaths(host, source, options.name, join(partial, 'irmap-cache'));
    const mounts = sandboxMounts(readFileSync(`/proc/${pid}/mountinfo`, 'utf8'));
    try {
      await runCriu(host, {
        command: 'dump',
        name: options.name,
        imagesDir: partial,
        owner: hostIdOfRoot(pid),
        options: [
          `tree ${pid}`,
          `root /proc/${pid}/root`,
          'network-lock nftables',
          'skip-in-flight',
          'link-remap',
          `ghost-limit ${deletedFileBytesMax}`,
          ...(end ? [] : ['leave-running']),
          ...sharedOptions,
          ...mounts.filter(({ external }) => external).map(externalOption),
        ],
        stages: {
          async 'post-dump'() {
            options.signal?.throwIfAborted();
            await commit(mounts);
          },
        },
      });
      return mounts;
    } catch (error) {
      if (attempt === attemptsMax || !(error instanceof AtollError) || error.detail !== 'checkpoint_retry') throw error;
      await Bun.sleep(retryDelayMs);
    }
  }
}

/** The host's ID of a sandbox's root. Source: user_namespaces(7), `uid_map`. */
function hostIdOfRoot(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/uid_map`, 'utf8').trim().split(/ +/)[1]);
}

/**
 * Tells CRIU where the sandbox's file watches are; it could find few of them by itself. Afterwards the processes go, also
 * where they stood still before: CRIU stops them by itself, and where one is stopped by a signal in a frozen group of
 * cgroup v1, it would wait for it without end.
 */
async function watchPaths(host: CriuHost, { pid, group, diskMount, layers }: CheckpointSource, name: string, image: string): Promise<void> {
  const list = join(host.runDir, `${name}.pids`);
  await group.freeze();
  try {
    writeFileSync(list, group.processes().join('\n'));
    const argv = [host.helperBinary, 'watch-paths', String(pid), list, image, diskMount, ...layers];
    const { status, output } = await host.helper.spawn(argv, { timeoutMs: watchTimeoutMs });
    if (status !== 0) throw new AtollError('unavailable', `the sandbox's file watches can't be kept: ${output.trim()}`);
  } finally {
    group.thaw();
    rmSync(list, { force: true });
  }
}

async function undoKilled(host: CriuHost, source: CheckpointSource, name: string, error: unknown): Promise<void> {
  if (error instanceof AtollError && error.detail === criuKilled) await undoDump(host, source, name);
}

/**
 * Fails where CRIU does not hold the sandbox any more: what it has done since the images were made is not in them.
 * Source: proc_pid_status(5).
 */
function requireTraced(pid: number): void {
  if (!/^TracerPid:\t[1-9]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) throw new AtollError('unavailable', 'CRIU has let the sandbox go', { detail: criuKilled });
}

/**
 * Takes back what a CRIU that was killed has done to a sandbox: rules that let no packet through, connections that send nothing. The
 * kernel lets its processes go by itself.
 */
export async function undoDump(host: Pick<CriuHost, 'helper' | 'helperBinary' | 'runDir'>, { pid, group }: Pick<CheckpointSource, 'pid' | 'group'>, name: string): Promise<void> {
  const list = join(host.runDir, `${name}.pids`);
  group.thaw();
  try {
    writeFileSync(list, group.processes().join('\n'));
    const { status, output } = await host.helper.spawn([host.helperBinary, 'undo-dump', String(pid), list], { timeoutMs: watchTimeoutMs });
    if (status !== 0) throw new AtollError('internal', `what a checkpoint that was killed has left in a sandbox could not be undone: ${output.trim()}`);
  } finally {
    rmSync(list, { force: true });
  }
}

/** The disk of a sandbox that stands still: what its kernel holds is written to the image, then the image is copied. */
async function copyDisk({ helper }: Pick<CriuHost, 'helper'>, source: CheckpointSource, to: string): Promise<void> {
  for (const argv of [['sync', '--file-system', source.diskMount], ['cp', '--reflink=auto', '--sparse=auto', source.disk, to]]) {
    const { status, output } = await helper.spawn(argv, { timeoutMs: copyTimeoutMs });
    if (status !== 0) throw new AtollError(/No space left/.test(output) ? 'no_space' : 'internal', `the sandbox's disk can't be copied: ${output.trim()}`);
  }
}

/** Gives the images their final form and name. */
async function finish(host: SealHost, { volumes }: CheckpointSource, options: CheckpointOptions, content: Pick<Manifest, 'memory' | 'disk' | 'mounts'>): Promise<void> {
  const partial = partialOf(options.directory);
  if (content.memory) {
    closeOneEndedConnections(join(partial, 'files.img'));
    allowOtherSizes(join(partial, 'files.img'), volumes);
  }
  const madeBy = { machine: process.arch, kernel: release(), criu: host.criu?.version ?? null };
  writeManifest(partial, { version: 1, createdAtMs: Date.now(), madeBy, facts: options.facts, ...content });
  await seal(host, partial, options.directory);
}

type SealHost = Pick<CriuHost, 'helper' | 'helperBinary'> & Partial<Pick<CriuHost, 'criu'>>;

function partialOf(directory: string): string {
  return `${directory}.partial`;
}

function makePartial(partial: string): void {
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { mode: 0o700 });
}

function discard(directory: string, error: unknown): never {
  rmSync(directory, { recursive: true, force: true });
  throw error;
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended: what was wanted.
  }
}
