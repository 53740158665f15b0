import { existsSync, linkSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError, messageOf } from '../../base/error.ts';
import { withoutPlaces } from '../../base/process/without-places.ts';
import type { SandboxResources } from '../../protocol/node.ts';
import type { Cgroups } from '../cgroup/cgroup.ts';
import type { Slot } from '../layout.ts';
import { sharedOptions } from './dump.ts';
import { quote, runCriu, type CriuHost } from './criu.ts';
import { guardCriu } from './guard-criu.ts';
import { bringLater, type LaterMemory } from './later-memory.ts';
import { chooseLaterPages, type LaterMeasure } from './later-pages.ts';
import { looserMounts, sourceOption, type SandboxMount } from './mounts.ts';
import { diskFile, readManifest, type Manifest } from './manifest.ts';
import { damaged, memorySumsFile, verifyChecksums } from './checksums.ts';
import { mapToHostIds } from './user-namespace.ts';

/** A snapshot that was found whole; its memory is not checked yet. */
export type OpenSnapshot = {
  directory: string;
  manifest: Manifest;
  /**
   * Settles when its memory was read, once for all callers; fails with `unavailable` if that is damaged. No process
   * may run before, unless its memory comes later.
   */
  memoryWhole(): Promise<void>;
};

/**
 * Checks a snapshot, except for its memory, before its use. It may then be restored any number of times. Errors:
 * `not_found`, or `unavailable` if it is damaged or incomplete.
 */
export async function openSnapshot(
  host: Pick<CriuHost, 'helper' | 'helperBinary'>,
  directory: string,
): Promise<OpenSnapshot> {
  const manifest = readManifest(directory);
  await verifyChecksums(host, directory, 'rest');
  let whole: Promise<void> | undefined;
  return { directory, manifest, memoryWhole: () => (whole ??= verifyChecksums(host, directory, 'memory')) };
}

/** What restoring checkpoints needs. */
export type RestoreHost = CriuHost & {
  cgroups: Cgroups;
  /** For links to snapshots' files; on the same file system as snapshots. */
  stagingDir: string;
  /** For mount points, in the helper's namespace. */
  mountsDir: string;
  /** Whether memory can come later on this host. */
  canBringLater: boolean;
};

/** The place for a sandbox. The slot is taken and has no control group, link or process; the disk is mounted. */
type RestoreTarget = {
  slot: Slot;
  /** The control group to make, relative to the root of each hierarchy. */
  cgroupPath: string;
  resources: SandboxResources;
  diskMount: string;
  /** Mount points of its layers, lowest first: the same layers as when the snapshot was made. */
  layers: string[];
  /** The agent that the sandbox was started with: its memory is mapped from these files. */
  agentDir: string;
  /** A directory that strangers may pass, with the sandbox's own files that stand in for the kernel's. */
  ownFilesDir: string;
  /** The sandbox's /sys. */
  sysDir: string;
  /** How much memory may come while the processes already run; absent: none. */
  later?: LaterMeasure;
  /** By mount point: directories whose owners are already shifted. */
  volumes: Record<string, string>;
  /**
   * Called when the sandbox's namespaces are there and nothing runs in them: gives it its link, its address and its
   * rules. The process is the sandbox's first.
   */
  onNamespaces(pid: number): Promise<void>;
  /** Called when everything is in place and no process of the sandbox has run yet. If it fails, none will. */
  onRestored?(pid: number): Promise<void>;
  /** Called right before they are released, which happens in any case. */
  beforeResume?(): Promise<void>;
};

/** The name of CRIU's run that restores into a slot. */
export const restoreName = ({ name }: Pick<Slot, 'name'>): string => `restore-${name}`;

/** Forgets the restores that a crash cut off, once nothing is left of them: their slots are free for others. */
export function forgetRestores(runDir: string): void {
  for (const name of readdirSync(runDir))
    if (name.startsWith(restoreName({ name: '' })) && name.endsWith('.conf')) rmSync(join(runDir, name));
}

/**
 * Brings the processes of a snapshot back to life in a slot and answers the first of them. All of them run when this
 * settles. Errors: `unavailable` with the reason, also if its memory is damaged; then no process is left, and the slot
 * has to be released like any other.
 */
export async function restore(
  host: RestoreHost,
  snapshot: OpenSnapshot,
  target: RestoreTarget,
): Promise<{ pid: number }> {
  const { manifest } = snapshot;
  requireRestorable(manifest);
  const { slot, beforeResume } = target;
  const images = join(host.stagingDir, slot.name);
  const emptyDir = join(host.runDir, 'empty');
  await using undo = new AsyncDisposableStack();
  undo.defer(() => rmSync(images, { recursive: true, force: true }));
  mkdirSync(host.stagingDir, { recursive: true, mode: 0o700 });
  await linkImages(snapshot.directory, images, slot.baseId);
  mkdirSync(emptyDir, { recursive: true });
  const root = await mountRoot(host, target, undo);
  const sources = {
    agentDir: target.agentDir,
    ownFilesDir: target.ownFilesDir,
    sysDir: target.sysDir,
    cgroupPath: target.cgroupPath,
    emptyDir,
    volumes: target.volumes,
  };
  const groups = host.cgroups.make(target.cgroupPath, target.resources);
  const later = await beginLater(host, snapshot, target, { images, groups });
  const memoryWhole = later ? later.verifyNow() : snapshot.memoryWhole();
  memoryWhole.catch(() => {}); // a restore that fails for another reason does not ask
  let pid = 0;
  using guard = guardCriu(host, restoreName(slot));
  await runCriu(host, {
    command: 'restore',
    name: restoreName(slot),
    imagesDir: images,
    owner: slot.baseId,
    groups,
    memoryLater: later !== undefined,
    options: [
      'restore-detached',
      `root ${quote(root)}`,
      ...sharedOptions,
      ...manifest.mounts.filter(({ external }) => external).map(mount => sourceOption(mount, sources)),
    ],
    stages: {
      async 'setup-namespaces'(first) {
        pid = first;
        guard.watch(first);
        await guard.during(() => target.onNamespaces(first));
      },
      'post-restore': first =>
        guard.during(async () => {
          await memoryWhole;
          await restrictMounts(host, first, manifest.mounts);
          await target.onRestored?.(first);
        }),
      ...(beforeResume && { 'pre-resume': () => guard.during(beforeResume) }),
    },
  }).catch(async error => {
    // A killed CRIU leaves what it has made of the sandbox, and the process that brings memory would wait for that.
    host.cgroups.kill(target.cgroupPath);
    // Memory begins to come before CRIU has ended; if some is damaged, CRIU ends with the sandbox.
    const found = await later?.giveUp();
    // If an image is too short, CRIU ends before the check has found that.
    await memoryWhole;
    throw found === undefined ? error : damaged(found);
  });
  if (pid === 0) throw new AtollError('internal', 'CRIU restored a sandbox without saying which');
  return { pid };
}

/** The root that CRIU is told of, until it is undone: by then the sandbox has a mount of its own. */
async function mountRoot(
  { helper, mountsDir }: RestoreHost,
  { slot: { name, baseId }, diskMount, layers }: RestoreTarget,
  undo: AsyncDisposableStack,
): Promise<string> {
  const root = join(mountsDir, `restore-${name}`);
  mkdirSync(root, { recursive: true });
  await helper.call('overlay-mount', { baseId, at: root, disk: diskMount, layers });
  undo.defer(async () => {
    await helper.call('unmount', { at: root });
    rmSync(root, { recursive: true, force: true });
  });
  return root;
}

/** If there is much memory, lets some of it come while the processes run. */
async function beginLater(
  host: RestoreHost,
  { directory }: OpenSnapshot,
  { later: measure, slot, resources }: RestoreTarget,
  { images, groups: [group] }: { images: string; groups: string[] },
): Promise<LaterMemory | undefined> {
  // Earlier releases have no checksums by the piece.
  if (!measure || group === undefined || !existsSync(join(directory, memorySumsFile))) return undefined;
  const pages = await chooseLaterPages(directory, images, { bytesMax: resources.memoryMiB * 2 ** 20, measure });
  if (!pages) return undefined;
  return bringLater(host, { slotName: slot.name, directory, imagesDir: images, group, pages });
}

function requireRestorable({ memory, madeBy }: Manifest): void {
  if (!memory) throw new AtollError('conflict', 'the snapshot holds no memory; start it from its disk');
  if (madeBy.machine !== process.arch)
    throw new AtollError('unavailable', `the snapshot is of a ${madeBy.machine} machine, this is ${process.arch}`);
}

/** Before a process of the sandbox runs, makes the mounts read-only again that were read-only. */
async function restrictMounts({ helper }: CriuHost, pid: number, wanted: SandboxMount[]): Promise<void> {
  const mountinfo = () => readFileSync(`/proc/${pid}/mountinfo`, 'utf8');
  const looser = looserMounts(wanted, mountinfo());
  if (looser.length === 0) return;
  await helper.call('restrict', { pid, mounts: looser }).catch((cause: unknown) => {
    const reason = withoutPlaces(messageOf(cause));
    throw new AtollError('unavailable', `a mount of the sandbox can't be protected: ${reason}`, { cause });
  });
  const left = looserMounts(wanted, mountinfo());
  if (left.length > 0)
    throw new AtollError(
      'unavailable',
      `mounts of the sandbox stay less restricted than before: ${left.map(({ point }) => point).join(' ')}`,
    );
}

/** Links the images, and copies the one with host IDs: a checkpoint is restored many times, even at the same time. */
async function linkImages(from: string, to: string, baseId: number): Promise<void> {
  rmSync(to, { recursive: true, force: true });
  // The restored processes open them as the sandbox's own users, by a descriptor of the directory; its parent stays
  // closed.
  mkdirSync(to, { recursive: true, mode: 0o711 });
  for (const name of readdirSync(from)) {
    if (name === diskFile || !name.endsWith('.img')) continue;
    if (name.startsWith('userns-')) await mapToHostIds(join(from, name), join(to, name), baseId);
    else linkSync(join(from, name), join(to, name));
  }
}
