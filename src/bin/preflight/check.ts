import { dirname } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { kernelMin } from '../../node/doctor/kernel.ts';
import type { Settings } from '../settings/settings.ts';
import { type HostFacts, nearest } from './facts.ts';

/** Programs that every start needs, with the package of each in Debian and Ubuntu. */
const programs: Record<string, string> = {
  crun: 'crun',
  nft: 'nftables',
  ip: 'iproute2',
  'mkfs.ext4': 'e2fsprogs',
  'mkfs.erofs': 'erofs-utils',
  losetup: 'mount',
  setpriv: 'util-linux',
  unshare: 'util-linux',
  tar: 'tar',
};

/** Room for the base template and the first sandboxes, besides the disk reserve. */
const firstStartMiB = 1024;
const MiB = 1024 ** 2;

/** Network and user-space file systems (statfs(2)). They can't shift owners, and SQLite's locks fail on some. */
const remoteFileSystems = new Map<bigint, string>([
  [0x6969n, 'NFS'],
  [0xff534d42n, 'CIFS'],
  [0xfe534d42n, 'SMB'],
  [0x517bn, 'SMB'],
  [0x65735546n, 'FUSE'],
  [0x01021997n, '9p'],
  [0x00c36400n, 'Ceph'],
  [0x5346414fn, 'AFS'],
  [0x0bd00bd0n, 'Lustre'],
  [0x47504653n, 'GPFS'],
]);

/**
 * Refuses a machine or a data directory that can't work. Takes a millisecond, changes nothing, and runs before
 * everything that does. `isFirst`: nothing is installed in the data directory yet. Errors: `unavailable`, `no_space`,
 * `precondition`, each in one sentence that says what to do.
 */
export function requireUsableHost(settings: Settings, facts: HostFacts, isFirst: boolean): void {
  requireMachine(facts);
  requirePrograms(facts);
  requirePlace(settings, facts);
  if (isFirst) requireFirstRoom(settings, facts);
}

function requireMachine({ system, architecture, kernel, userId }: HostFacts): void {
  if (system !== 'linux')
    refuse(`Atoll runs on Linux, and this is ${system}: use a Linux machine or a virtual machine.`);
  if (!['x64', 'arm64'].includes(architecture))
    refuse(`Atoll runs on x86-64 and arm64, and this machine is ${architecture}: use another one.`);
  const [major = 0, minor = 0] = kernel.split('.').map(Number);
  if (major < kernelMin[0] || (major === kernelMin[0] && minor < kernelMin[1]))
    refuse(
      `The kernel is ${kernel}, and sandboxes need ${kernelMin.join('.')} or newer: install one (Debian: from ` +
        'backports; Ubuntu: the HWE kernel) and reboot.',
    );
  if (userId !== 0)
    refuse('Atoll needs root, because it makes namespaces, mounts and network interfaces: run it with sudo.');
}

function requirePrograms({ hasProgram }: HostFacts): void {
  const lacks = Object.keys(programs).filter(name => !hasProgram(name));
  if (lacks.length === 0) return;
  const packages = [...new Set(lacks.map(name => programs[name]))];
  refuse(
    `${lacks.join(', ')} can't be found in PATH, and a start needs ${lacks.length === 1 ? 'it' : 'them'}: run ` +
      `\`apt install ${packages.join(' ')}\`, or add /usr/sbin to PATH.`,
  );
}

function requirePlace({ dataDir, cacheDir }: Settings, facts: HostFacts): void {
  requireDirectory('ATOLL_DATA_DIR', dataDir, facts);
  // Any later, a start would already have made the data directory.
  requireDirectory('ATOLL_CACHE_DIR', cacheDir, facts);
  if (facts.isReadOnly(dataDir))
    refuse(
      `${dataDir} is on a file system that is mounted read-only: mount it for writing (a failing disk becomes so by ` +
        'itself: `dmesg`), or set ATOLL_DATA_DIR to another directory.',
    );
  const remote = remoteFileSystems.get(facts.fileSystemOf(dataDir));
  if (remote !== undefined)
    refuse(
      `${dataDir} is on ${remote}, and sandboxes need a disk of this machine: set ATOLL_DATA_DIR to a directory ` +
        'on ext4, xfs or btrfs.',
    );
}

/** What root keeps in the directory is trusted later, so the directory must be root's. */
function requireDirectory(variable: string, directory: string, facts: HostFacts): void {
  const place = facts.placeOf(directory);
  const there = nearest(directory, path => facts.placeOf(path));
  if (facts.placeOf(there)?.isDirectory === false) {
    const subject = there === directory ? 'which' : `and ${there}`;
    refuse(
      `${variable} is ${directory}, ${subject} is a file: set it to a directory, or to one that is not there yet.`,
    );
  }
  if (!place && facts.placeOf('/proc') && /^\/(proc|sys|dev)(\/|$)/.test(dirname(directory)))
    refuse(`${variable} is ${directory}, where nothing can be kept: set it to a directory on ext4, xfs or btrfs.`);
  if (place && place.ownerId !== 0)
    refuse(
      `${directory} belongs to user ${place.ownerId}, who could exchange what root reads there: set ${variable} ` +
        `to another directory, or give this one to root (\`chown root ${directory}\`) if it is the installation's.`,
    );
}

function requireFirstRoom({ dataDir, diskReserveMiB }: Settings, facts: HostFacts): void {
  const freeMiB = Math.floor(facts.freeBytesOf(dataDir) / MiB);
  const neededMiB = diskReserveMiB + firstStartMiB;
  if (freeMiB >= neededMiB) return;
  throw new AtollError(
    'no_space',
    `${freeMiB} MiB are free for ${dataDir}, and a first start needs ${neededMiB} MiB (${diskReserveMiB} of them ` +
      'are the reserve): make room, set ATOLL_DATA_DIR to another disk, or set ATOLL_DISK_RESERVE_MIB lower. ' +
      'Nothing was changed.',
  );
}

function refuse(message: string): never {
  throw new AtollError('precondition', `${message} Nothing was changed.`);
}
