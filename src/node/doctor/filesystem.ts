import { closeSync, mkdirSync, openSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { tryCommand } from '../../base/process/command.ts';
import { AtollError, messageOf, systemCodeOf } from '../../base/error.ts';
import { failedWriteCode, isNoSpace } from '../../base/disk-room.ts';
import { kernelMin } from './kernel.ts';
import { limited, missing, ok, placeUnusable, type Probe } from './probe.ts';
import { Descriptors, makeFilesystem, openIdmapped } from './syscalls.ts';
import { openUserNamespace } from './user-namespace.ts';

/** Room for the base template, a few sandboxes and their files. */
const freeBytesWanted = 10 * 2 ** 30;
const GiB = 2 ** 30;
const MiB = 2 ** 20;
/** What a first start takes in addition to the reserve, which must stay free. */
const firstStartMiB = 1024;

/**
 * What root filesystems of sandboxes need, tried on the file system that holds `dir`. `reserveMiB` of it must stay
 * free.
 */
export function filesystemProbes(dir: string, reserveMiB: number): Probe[] {
  return [
    {
      name: 'idmapped mounts',
      needed: true,
      remedy: 'Put the data directory (ATOLL_DATA_DIR) on ext4, xfs or btrfs.',
      look: () =>
        inScratch(dir, async scratch => {
          await using namespace = await openUserNamespace();
          using open = new Descriptors();
          openIdmapped(open, scratch, namespace.fd);
          return ok(`on the data directory’s file system`);
        }),
    },
    {
      name: 'overlay over idmapped layers',
      needed: true,
      remedy: `A kernel of ${kernelMin.join('.')} or newer with CONFIG_OVERLAY_FS is needed (\`modprobe overlay\`).`,
      look: () => inScratch(dir, lookAtOverlay),
    },
    {
      name: 'EROFS',
      needed: true,
      remedy:
        `Install erofs-utils, and a kernel of ${kernelMin.join('.')} or newer with CONFIG_EROFS_FS ` +
        '(`modprobe erofs`).',
      look: () => inScratch(dir, lookAtErofs),
    },
    {
      name: 'disk limit',
      needed: true,
      remedy:
        'Loop devices and ext4 are needed: `modprobe loop`; in a container, /dev/loop-control and /dev/loop* must ' +
        'be passed in.',
      look: () => inScratch(dir, lookAtLoopDisk),
    },
    { name: 'quota', needed: false, look: () => lookAtQuota(dir) },
    {
      name: 'reflinks',
      needed: false,
      look: () =>
        inScratch(dir, async scratch => {
          writeFileSync(join(scratch, 'from'), 'x');
          try {
            await tryCommand(['cp', '--reflink=always', join(scratch, 'from'), join(scratch, 'to')]);
            return ok('disks of sandboxes are cloned without copying');
          } catch {
            // The filesystem has no reflinks: trying is the only way to find out.
            return limited('disks of sandboxes are copied, sparsely', 'Put the data directory on xfs or btrfs.');
          }
        }),
    },
    { name: 'disk space', needed: false, look: () => lookAtSpace(dir, reserveMiB) },
  ];
}

async function lookAtOverlay(scratch: string) {
  const dirs = ['upper', 'lower'].map(name => join(scratch, name));
  for (const dir of dirs) mkdirSync(dir);
  await using namespace = await openUserNamespace();
  using open = new Descriptors();
  const layers = dirs.map(dir => ['lowerdir+', openIdmapped(open, dir, namespace.fd)] as [string, number]);
  try {
    makeFilesystem(open, 'overlay', { descriptors: layers }, true);
    return ok('layers given as descriptors');
  } catch {
    // These kernels answer EINVAL; the sandbox that is tried below reports all other problems with overlays.
    return ok('layers given by path, as before Linux 6.13: the sandbox below tries it');
  }
}

async function lookAtErofs(scratch: string) {
  const [tree, image] = [join(scratch, 'tree'), join(scratch, 'image')];
  mkdirSync(tree);
  writeFileSync(join(tree, 'file'), 'content');
  await tryCommand(['mkfs.erofs', '--quiet', image, tree]);
  using open = new Descriptors();
  try {
    makeFilesystem(open, 'erofs', { strings: { source: image } }, true);
    return ok('images mounted from files, without loop devices');
  } catch {
    // Kernels before 6.12 take block devices only. Failures below are reported.
    const point = join(scratch, 'point');
    mkdirSync(point);
    await tryCommand(['unshare', '--mount', 'mount', '-t', 'erofs', '-o', 'ro,loop', image, point]);
    return ok('images mounted by loop devices');
  }
}

async function lookAtLoopDisk(scratch: string) {
  const image = join(scratch, 'disk');
  closeSync(openSync(image, 'w'));
  truncateSync(image, 16 << 20);
  await tryCommand(['mkfs.ext4', '-q', '-F', image]);
  const device = await tryCommand(['losetup', '--find', '--show', image]);
  try {
    using open = new Descriptors();
    makeFilesystem(open, 'ext4', { strings: { source: device } });
    return ok('an ext4 image for each sandbox: a full disk is ENOSPC, and df tells the limit');
  } finally {
    await tryCommand(['losetup', '--detach', device]);
  }
}

function lookAtQuota(dir: string) {
  const options = mountOptions(dir);
  const quota = options.split(',').find(option => /^(prjquota|pquota|quota=|usrquota|squota)/.test(option));
  // Sandboxes' disks are images of their own, so quotas of the host's file system are not used.
  return ok(
    quota === undefined
      ? 'none on the data directory’s file system; each sandbox has an ext4 image'
      : `${quota}; each sandbox has an ext4 image all the same`,
  );
}

async function lookAtSpace(dir: string, reserveMiB: number) {
  const { bavail, bsize } = await statfs(existing(dir));
  const free = bavail * bsize;
  const detail = `${(free / GiB).toFixed(1)} GiB free for ${dir}`;
  const leastMiB = reserveMiB + firstStartMiB;
  if (free < leastMiB * MiB)
    return missing(
      detail,
      `Free at least ${leastMiB} MiB (${reserveMiB} of them are the reserve, ATOLL_DISK_RESERVE_MIB), or set ` +
        'ATOLL_DATA_DIR.',
    );
  return free < freeBytesWanted
    ? limited(detail, `${freeBytesWanted / GiB} GiB or more leave room for templates and snapshots.`)
    : ok(detail);
}

/** A throwaway folder on the file system of `dir`, removed whatever happens. */
export async function inScratch<T>(dir: string, look: (scratch: string) => Promise<T>): Promise<T> {
  const scratch = await mkdtemp(join(existing(dir), '.atoll-doctor-')).catch((cause: unknown) => {
    throw new AtollError(
      isNoSpace(cause) ? 'no_space' : 'unavailable',
      `nothing can be written to ${existing(dir)}: ${messageOf(cause)}`,
      { detail: placeUnusable, cause },
    );
  });
  try {
    return await look(scratch);
  } catch (cause) {
    // A program that found no room says so only in words.
    if (failedWriteCode(scratch) !== 'no_space') throw cause;
    throw new AtollError('no_space', `the disk of ${existing(dir)} is full: this could not be tried`, { cause });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** `dir`, or the nearest folder above it that exists: it will be on the same file system. */
function existing(dir: string): string {
  const place = placeAt(dir);
  if (!place) return existing(join(dir, '..'));
  if (place.isDirectory()) return dir;
  throw new AtollError('unavailable', `${dir} is a file: no directory can be there`, { detail: placeUnusable });
}

function placeAt(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (systemCodeOf(error) === 'ENOTDIR') return undefined; // a file is above it
    throw error;
  }
}

/** Options of the mount that holds `dir`, including those of the file system itself. */
function mountOptions(dir: string): string {
  const wanted = existing(dir);
  const holds = (point: string) => wanted === point || wanted.startsWith(point === '/' ? '/' : `${point}/`);
  const lines = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map(line => line.split(' '));
  const mounts = lines
    .filter(fields => holds(fields[4] ?? '\0'))
    .sort((a, b) => (a[4] ?? '').length - (b[4] ?? '').length);
  const last = mounts[mounts.length - 1] ?? [];
  return `${last[5] ?? ''},${last[last.length - 1] ?? ''}`;
}
