import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../base/error.ts';
import { installationsMax } from '../base/process/part-users.ts';
import { detectCgroups } from './cgroup/cgroup.ts';
import { cgroupRootOf } from './layout.ts';
import { cString, errno, libc } from './native/libc.ts';

const LOCK_EX = 2;
const LOCK_EX_NB = LOCK_EX | 4;
const MNT_DETACH = 2;
const registry = '/run/atoll';

/** The place of this data directory among the installations on this machine. */
export type Installation = {
  number: number;
  /** Gone after a reboot, like everything that it describes. */
  runDir: string;
  /** Frees the directory for another process; sandboxes and the number stay. */
  unlock(): void;
  /** Gives the number back, when nothing is left. */
  release(): void;
};

/**
 * Locks the data directory and finds its number, which determines user IDs, addresses and names on the host. The data
 * directory keeps its number until the host reboots or the installation releases it. `inMemory`: the run directory is
 * a file system of its own.
 */
export function claimInstallation(dataDir: string, { inMemory } = { inMemory: true }): Installation {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lock = openSync(join(dataDir, 'lock'), 'w', 0o600);
  if (libc.flock(lock, LOCK_EX_NB) < 0) {
    closeSync(lock);
    throw new AtollError('conflict', `another Atoll runs on ${dataDir}; stop it, or set ATOLL_DATA_DIR`);
  }
  mkdirSync(registry, { recursive: true, mode: 0o755 });
  const number = findNumber(dataDir, inMemory);
  const runDir = join(registry, String(number));
  return {
    number,
    runDir,
    unlock: () => closeSync(lock),
    release: () =>
      whileOthersWait(() => {
        unmount(runDir);
        rmSync(runDir, { recursive: true, force: true });
      }),
  };
}

/** Whether a process runs on the data directory, or has not quite ended. */
export function isInUse(dataDir: string): boolean {
  const lock = openSync(join(dataDir, 'lock'), 'w', 0o600);
  try {
    return libc.flock(lock, LOCK_EX_NB) < 0;
  } finally {
    closeSync(lock);
  }
}

/**
 * Locks out other processes during a few file operations: a number must not be taken before everything of it is gone.
 */
function whileOthersWait<T>(work: () => T): T {
  const registryLock = openSync(join(registry, 'lock'), 'w', 0o600);
  try {
    libc.flock(registryLock, LOCK_EX);
    return work();
  } finally {
    closeSync(registryLock);
  }
}

function findNumber(dataDir: string, inMemory: boolean): number {
  return whileOthersWait(() => {
    const owners = Array.from({ length: installationsMax }, (_, number) => ownerOf(number));
    const number = chooseNumber(owners, dataDir, {
      isSeen: owner => existsSync(join(owner, 'lock')),
      hasProcesses: number => detectCgroups().processes(cgroupRootOf({ installation: number })).length > 0,
    });
    if (number === undefined)
      throw new AtollError(
        'unavailable',
        `this machine has ${installationsMax} installations already: ${owners.join(', ')}; end one with 'atoll down'`,
      );
    // Searchable, but not listable: the runtime passes through it as a mapped user.
    const runDir = join(registry, String(number));
    mkdirSync(runDir, { recursive: true, mode: 0o711 });
    // Files that an earlier installation has left there would hide the ones written below.
    if (owners[number] !== dataDir) unmount(runDir);
    // Written below the mount and on it: a process in another mount namespace does not see the mount, and must not
    // take the number.
    writeFileSync(join(runDir, 'owner'), dataDir);
    if (inMemory) keepInMemory(runDir);
    writeFileSync(join(runDir, 'owner'), dataDir);
    return number;
  });
}

/**
 * The number of `dataDir`: the one that it has, or a free one. A number whose directory is not visible here is taken
 * last, and only if none of its sandboxes runs: it may belong to another container that shares /run/atoll. Undefined
 * if all are taken.
 */
export function chooseNumber(
  owners: readonly (string | undefined)[],
  dataDir: string,
  { isSeen, hasProcesses }: { isSeen(owner: string): boolean; hasProcesses(number: number): boolean },
): number | undefined {
  const found = [owners.indexOf(dataDir), owners.indexOf(undefined)].find(number => number >= 0);
  if (found !== undefined) return found;
  const left = owners.findIndex((owner, number) => owner !== undefined && !isSeen(owner) && !hasProcesses(number));
  return left >= 0 ? left : undefined;
}

/**
 * Makes the directory's content vanish with the host's memory. If /run is on the host's disk, as in some containers
 * and virtual machines, it would outlive a reboot, and each start of a sandbox would pay for a dozen files on a disk.
 * If /run is already in memory, its mount flags would be forced on what sandboxes are shown of it, and no checkpoint
 * could be restored.
 */
function keepInMemory(directory: string): void {
  if (isMountPoint(directory)) return;
  if (libc.mount(cString('atoll'), cString(directory), cString('tmpfs'), 0n, cString('mode=711')) < 0) {
    throw new AtollError('internal', `a file system in memory can't be mounted on ${directory}: errno ${errno()}`);
  }
}

/**
 * Unmounts at once for new users, and for current users as soon as they are done. The kernel refuses if it is no
 * mount.
 */
function unmount(directory: string): void {
  libc.umount2(cString(directory), MNT_DETACH);
}

const isMountPoint = (directory: string) => statSync(directory).dev !== statSync(join(directory, '..')).dev;

function ownerOf(number: number): string | undefined {
  const path = join(registry, String(number), 'owner');
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}
