import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { withoutPlaces } from '../../base/process/without-places.ts';
import { checkpointFailed, runCriu, type CriuHost } from './criu.ts';
import { guardCriu } from './guard-criu.ts';
import { externalOption, sandboxMounts, type SandboxMount } from './mounts.ts';
import type { CheckpointSource } from './checkpoint-source.ts';
import { followImages, type Follow } from './checksums.ts';
import { memoryIsThere } from './later-memory.ts';
import { namelessFiles } from './nameless-files.ts';
import { undoFailed } from './undo-dump.ts';

/** Where a checkpoint goes. */
export type CheckpointOptions = {
  /** Where the snapshot will be. It does not exist yet; its parent does, on the file system of the disk. */
  directory: string;
  /** Names the files of this run; no other run has the same name at the time. */
  name: string;
  /** The caller's own facts, which it gets back when the snapshot is opened. */
  facts: Record<string, unknown>;
  /** If it aborts before the snapshot is complete, the sandbox is left as it was and nothing remains. */
  signal?: AbortSignal;
};

/** Up to this size, files without a name are kept: files that are open and deleted are part of the checkpoint. */
const deletedFileBytesMax = 4 * 1024 ** 3;
/**
 * A dump that CRIU could not do is tried again, and the sandbox runs in between: a connection that was made but not
 * accepted yet, or a watch that was set after the look, is gone a moment later. CRIU's answer does not tell those from
 * lasting causes.
 */
const attemptsMax = 3;
const retryDelayMs = 50;
const watchTimeoutMs = 60_000;
/**
 * How long CRIU may compute: enough for thousands of processes or connections, plus a time for the memory. It computes
 * on the host's account, not the sandbox's.
 */
const cpuSeconds = { least: 120, perGiB: 2 } as const;
/** Bytes of files in memory, holes included: CRIU processes this much in about a second. */
const memoryFileBytesMax = 2 ** 40;

/** Options that a dump and its restores share. */
export const sharedOptions = ['empty-ns net', 'tcp-established', 'manage-cgroups=ignore', 'file-locks'];

/** What a dump has produced when its images are complete. */
export type Dumped = {
  /** The sandbox's external mounts. */
  mounts: SandboxMount[];
  /** The checksums that `follow` asked for: they are due once the snapshot has its manifest. */
  checksums: Promise<void>;
};

type Dump = {
  /** Whether the processes end after `commit`. */
  end: boolean;
  /** Whether no process may run on after `commit`: its further work would not be in the snapshot. */
  final: boolean;
  /** Called when the images are complete and the processes still there. If it fails they run on. */
  commit(dumped: Dumped): Promise<void>;
  /** Makes checksums, and writes the images out, while CRIU writes them. */
  follow?: Follow;
};

/**
 * Writes the memory and processes of a sandbox into its partial snapshot. After an error the sandbox is as it was,
 * unless the error came after a final `commit`: then it is as CRIU has left it. Errors: `unavailable` (it can't be
 * kept, and why), `canceled`.
 */
export async function dump(
  host: CriuHost,
  source: CheckpointSource,
  options: CheckpointOptions,
  { end, final, commit, follow }: Dump,
): Promise<Dumped> {
  const { pid } = source;
  const partial = partialOf(options.directory);
  await memoryIsThere(host, source);
  await requireLittleToGoThrough(host, source);
  let committed = false;
  for (let attempt = 1; ; attempt++) {
    options.signal?.throwIfAborted();
    await makePartial(partial);
    await watchPaths(host, source, options.name, join(partial, 'irmap-cache'));
    const mounts = sandboxMounts(readFileSync(`/proc/${pid}/mountinfo`, 'utf8'));
    const dumped: Dumped = { mounts, checksums: Promise.resolve() };
    try {
      using guard = guardCriu(host, options.name);
      guard.watch(pid);
      await runCriu(host, {
        command: 'dump',
        name: options.name,
        imagesDir: partial,
        owner: hostIdOfRoot(pid),
        teamId: source.teamId,
        processes: () => source.group.processes(),
        cpuSeconds: cpuSeconds.least + Math.ceil((source.memoryBytes() / 2 ** 30) * cpuSeconds.perGiB),
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
        onPlace() {
          if (!follow) return;
          dumped.checksums = followImages(host, partial, follow);
          dumped.checksums.catch(() => {}); // after a failed dump, whoever removes its directory does not wait for them
        },
        stages: {
          async 'post-dump'() {
            options.signal?.throwIfAborted();
            await commit(dumped);
            committed = true;
          },
        },
      });
      return dumped;
    } catch (error) {
      if (committed && final) throw error;
      await undoFailed(host, source, options.name, error);
      if (attempt === attemptsMax || !(error instanceof AtollError) || error.detail !== checkpointFailed) throw error;
      await Bun.sleep(retryDelayMs);
    }
  }
}

/** Refuses what CRIU would process for minutes without finding anything. Errors: `precondition`, `unavailable`. */
async function requireLittleToGoThrough(host: CriuHost, { group, teamId }: CheckpointSource): Promise<void> {
  const { memoryBytes } = await namelessFiles(host, { pids: group.processes(), teamId });
  if (memoryBytes <= memoryFileBytesMax) return;
  const lengths = (memoryBytes / memoryFileBytesMax).toFixed(1);
  throw new AtollError(
    'precondition',
    'the memory of the sandbox can’t be kept: ' +
      `its files in memory are ${lengths} TiB long with their holes, the most is 1`,
  );
}

/** Where a snapshot is until it is complete. */
export function partialOf(directory: string): string {
  return `${directory}.partial`;
}

async function makePartial(partial: string): Promise<void> {
  await rm(partial, { recursive: true, force: true });
  mkdirSync(partial, { mode: 0o700 });
}

/** The host's ID of a sandbox's root. Source: user_namespaces(7), `uid_map`. */
function hostIdOfRoot(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/uid_map`, 'utf8').trim().split(/ +/)[1]);
}

/**
 * Tells CRIU where the sandbox's file watches are; it could find few of them by itself. The processes run after this,
 * even if they stood still before: CRIU stops them by itself, and it would wait for ever for one that is stopped by a
 * signal in a frozen group of cgroup v1.
 */
async function watchPaths(
  host: CriuHost,
  { pid, teamId, group, diskMount, layers }: CheckpointSource,
  name: string,
  image: string,
): Promise<void> {
  const list = join(host.runDir, `${name}.pids`);
  await group.freeze();
  try {
    writeFileSync(list, group.processes().join('\n'));
    const argv = [host.helperBinary, 'watch-paths', String(pid), list, image, diskMount, ...layers];
    // It takes as long as the sandbox has files, each of which may be looked at: short programs of others do not wait
    // for that.
    const { status, output } = await host.helper.spawn(argv, { timeoutMs: watchTimeoutMs, kind: 'dump', teamId });
    if (status !== 0)
      throw new AtollError('unavailable', `the sandbox's file watches can't be kept: ${withoutPlaces(output)}`);
  } finally {
    group.thaw();
    rmSync(list, { force: true });
  }
}
