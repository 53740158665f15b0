import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { quote } from './criu.ts';
import { ownFiles } from '../numbers/own-files.ts';
import { maskedDirectories, maskedFiles, shownDevices, shownOfSysfs } from '../drivers/crun/config.ts';

/** File systems of a sandbox alone that hold nothing, or nothing that is not in the checkpoint. */
const ownTypes = new Set(['proc', 'devpts', 'mqueue']);
/** The mount points of a sandbox's own tmpfs; their content is in the checkpoint. Other tmpfs only cover something. */
const ownTmpfs = new Set(['/dev', '/dev/shm', '/sys/fs/cgroup']);

/** Sandboxes that earlier versions started have a sysfs of their own, with these directories masked. */
const earlier = {
  sysfs: '/sys',
  directories: ['/sys/devices/virtual/powercap', '/sys/firmware', '/sys/fs/fuse', '/sys/kernel'],
};

/**
 * What takes the place of a sandbox's external mounts when it is restored. Paths are in the helper's mount namespace;
 * every directory on the way lets strangers pass, because the sandbox's root goes that way.
 */
type MountSources = {
  /** The agent that the sandbox was started with. */
  agentDir: string;
  /** Where its own files are that stand in for the kernel's. */
  ownFilesDir: string;
  /** Its /sys, below what is mounted there. */
  sysDir: string;
  /** The sandbox's control group, relative to the root of each hierarchy. */
  cgroupPath: string;
  /** A directory that is empty and stays empty. */
  emptyDir: string;
  /** By mount point: directories whose owners are already shifted. */
  volumes: Record<string, string>;
};

/** A mount in a sandbox. */
export type SandboxMount = {
  point: string;
  /**
   * Whether it comes from outside of the sandbox. So does the root, which does not count: it is made in another way.
   */
  external: boolean;
  /** What stands for an external mount in the checkpoint; absent in those of earlier versions: its mount point. */
  key?: string;
  /** Its restrictions, out of `ro`, `nosuid`, `nodev`, `noexec`. */
  restrictions: string[];
};

const restricting = ['ro', 'nosuid', 'nodev', 'noexec'];

/** The mounts of a sandbox from its mountinfo (proc_pid_mountinfo(5)), one for each mount point. */
export function sandboxMounts(mountinfo: string): SandboxMount[] {
  const mounts = new Map<string, SandboxMount>();
  for (const line of mountinfo.trim().split('\n')) {
    const fields = line.split(' ');
    const point = unescape(fields[4] ?? '');
    const type = fields[fields.indexOf('-', 6) + 1] ?? '';
    const own =
      ownTypes.has(type) || (type === 'tmpfs' && ownTmpfs.has(point)) || (type === 'sysfs' && point === earlier.sysfs);
    const external = point !== '/' && !own;
    const options = (fields[5] ?? '').split(',');
    const covered = mounts.get(point);
    const restrictions = restricting.filter(name => options.includes(name) || covered?.restrictions.includes(name));
    mounts.set(point, { point, external: external || covered?.external === true, restrictions });
  }
  return [...mounts.values()].map((mount, index) => (mount.external ? { ...mount, key: `m${index}` } : mount));
}

/**
 * Tells CRIU about a mount that comes from outside when it makes a checkpoint: `external mnt[POINT]:KEY`. Fails with
 * `invalid` for a point that CRIU would read as something else: a stranger may have chosen its name.
 */
export function externalOption({ point, key }: SandboxMount): string {
  if (/[\]:\x00-\x1f\x7f]/.test(point))
    throw new AtollError(
      'invalid',
      `the mount point ${JSON.stringify(point)} can't be kept in a checkpoint: it holds "]", ":" or a control ` +
        'character',
    );
  return `external ${quote(`mnt[${point}]:${key}`)}`;
}

/** The same when it restores one: `external mnt[KEY]:SOURCE`. */
export function sourceOption({ point, key = point }: SandboxMount, sources: MountSources): string {
  return `external ${quote(`mnt[${key}]:${mountSource(point, sources)}`)}`;
}

/**
 * Those of `wanted` that are less restricted in `mountinfo`. CRIU loses the flags of some mounts that share a file
 * system.
 */
export function looserMounts(wanted: SandboxMount[], mountinfo: string): SandboxMount[] {
  const present = new Map(sandboxMounts(mountinfo).map(mount => [mount.point, mount.restrictions]));
  return wanted.filter(({ point, restrictions }) => restrictions.some(name => !present.get(point)?.includes(name)));
}

/** What to mount at an external mount point. Fails with `internal` if nothing is known to belong there. */
export function mountSource(point: string, sources: MountSources): string {
  const volume = sources.volumes[point];
  if (volume !== undefined) return volume;
  const ownFile = Object.entries(ownFiles).find(([path]) => path === point);
  if (ownFile) return join(sources.ownFilesDir, ownFile[1]);
  if (point === '/.agent') return sources.agentDir;
  if (point === '/sys/fs/cgroup' || point.startsWith('/sys/fs/cgroup/')) return join(point, sources.cgroupPath);
  if (point === '/sys') return sources.sysDir;
  if (shownDevices.includes(point) || shownOfSysfs.includes(point)) return point;
  // Masked places: a file gets /dev/null, a directory an empty one.
  if (maskedDirectories.includes(point) || earlier.directories.includes(point)) return sources.emptyDir;
  if (maskedFiles.includes(point)) return '/dev/null';
  throw new AtollError('internal', `the checkpoint has a mount at ${point} that this node can't put back`);
}

/** mountinfo writes spaces and the like as octal escapes. */
function unescape(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
