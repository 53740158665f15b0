import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { authorities, checkout, type Contents, missingIn } from './contents.ts';
import { mustRunForeign } from './foreign.ts';
import { debianNameOf, type Host, isForeign, ownNpm, packagesOf } from './host-list.ts';
import { mustRun } from './program.ts';

const mirror = 'http://deb.debian.org/debian';
const diskBytes = 24 * 2 ** 30;
const debstrapTimeoutMs = 20 * 60_000;
/** An emulator unpacks and sets up packages for another type of machine. */
const foreignDebstrapTimeoutMs = 55 * 60_000;
const debstrapTries = 4;
const betweenDebstrapsMs = 20_000;
const diskTimeoutMs = 10 * 60_000;

/**
 * What a guest starts from, and what it has besides its distribution. Nothing writes to it: guests write to overlays.
 */
export type Image = { disk: string; kernel: string; initrd: string; contents: Contents };

/** Files of the guest: it gets its address from QEMU, admits the laboratory, and does nothing on a schedule. */
const files: Record<string, string> = {
  'etc/hostname': 'lab\n',
  'etc/hosts': '127.0.0.1 localhost lab\n',
  'etc/fstab': '/dev/vda / ext4 defaults 0 1\n',
  'etc/systemd/network/lab.network': '[Match]\nType=ether\nName=e*\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=no\n',
  'etc/systemd/journald.conf.d/lab.conf': '[Journal]\nStorage=persistent\n',
  // Some packages ask to rebuild the initial file system of the boot, which takes an emulated machine minutes.
  'etc/initramfs-tools/update-initramfs.conf': 'update_initramfs=no\n',
};
const masked = [
  'apt-daily.timer',
  'apt-daily-upgrade.timer',
  'e2scrub_all.timer',
  'fstrim.timer',
  'man-db.timer',
  'dpkg-db-backup.timer',
  'systemd-networkd-wait-online.service',
];

/**
 * The image of a host, from the cache below `directory` or made now: the distribution's packages, its own kernel, and
 * what set-up would download. An image made with other contents still serves: what it lacks goes with the sources.
 */
export async function imageOf(host: Host, directory: string, publicKey: string, contents: Contents): Promise<Image> {
  const key = createHash('sha256')
    .update(JSON.stringify([host.suite, packagesOf(host).own, files, masked, publicKey, diskBytes, checkout]))
    .digest('hex')
    .slice(0, 16);
  const made = join(directory, `${host.name}-${key}`);
  const image = { disk: join(made, 'disk.img'), kernel: join(made, 'vmlinuz'), initrd: join(made, 'initrd') };
  const note = (folder: string) => join(folder, 'contents.json');
  if (existsSync(made)) return { ...image, contents: JSON.parse(readFileSync(note(made), 'utf8')) as Contents };
  const work = `${made}.new`;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const tree = join(work, 'tree');
  await makeTree(host, tree, join(work, 'mmdebstrap.log'));
  if (isForeign(host)) await putForeignModules(host, join(work, 'npm'), tree);
  await mustRun(['sh', '-c', 'tar -c -C / --null --files-from=- | tar -x -C "$0"', tree], {
    timeoutMs: diskTimeoutMs,
    input: (isForeign(host) ? [authorities] : missingIn(undefined, contents))
      .filter(path => host.installs === 'checkout' || !path.startsWith(join(checkout, 'dist')))
      .map(path => `${path.slice(1)}\0`)
      .join(''),
  });
  furnish(tree, publicKey);
  for (const [name, wanted] of [
    ['vmlinuz', image.kernel],
    ['initrd', image.initrd],
  ] as const) {
    const [found] = readdirSync(join(tree, 'boot')).filter(file => file.startsWith(name));
    if (found === undefined) throw new Error(`${host.title} has no ${name}`);
    writeFileSync(join(work, wanted.slice(made.length + 1)), readFileSync(join(tree, 'boot', found)));
  }
  await mustRun(['mke2fs', '-q', '-t', 'ext4', '-d', tree, join(work, 'disk.img'), `${diskBytes / 1024}k`], {
    timeoutMs: diskTimeoutMs,
  });
  rmSync(tree, { recursive: true });
  writeFileSync(note(work), JSON.stringify(contents));
  renameSync(work, made);
  return { ...image, contents };
}

/**
 * The distribution's packages, from the mirror. If the mirror is away for a moment, this starts again from the
 * beginning: apt gives up an address for good at the first failed connection, however many retries it is allowed.
 */
async function makeTree(host: Host, tree: string, log: string): Promise<void> {
  // A snapshot mirror has expired lists; their signatures are checked all the same.
  const aged = '--aptopt=Acquire::Check-Valid-Until "false"';
  const { own, later } = packagesOf(host);
  const include = `--include=${[...own, ...later].join(',')}`;
  const argv = [
    'mmdebstrap',
    '--variant=minbase',
    '--dpkgopt=force-unsafe-io',
    `--architectures=${debianNameOf(host.architecture)}`,
    ...(isForeign(host) ? ['--mode=root', '--skip=check/qemu'] : []),
    aged,
    include,
    host.suite,
    tree,
    mirror,
  ];
  for (let left = debstrapTries; ; left--) {
    rmSync(tree, { recursive: true, force: true });
    try {
      // In its own mount namespace: what it mounts goes with it, however it ends.
      if (isForeign(host)) await mustRunForeign(argv, { timeoutMs: foreignDebstrapTimeoutMs, log });
      else await mustRun(['unshare', '--mount', ...argv], { timeoutMs: debstrapTimeoutMs, log });
      return;
    } catch (error) {
      if (left <= 1) throw error;
      await new Promise(resolve => setTimeout(resolve, betweenDebstrapsMs));
    }
  }
}

/** npm and its packages for another type of machine, by the same lock file. */
async function putForeignModules({ architecture }: Host, work: string, tree: string): Promise<void> {
  mkdirSync(work);
  for (const name of ['package.json', 'package-lock.json']) copyFileSync(join(checkout, name), join(work, name));
  const type = ['--os=linux', `--cpu=${architecture}`, '--libc=glibc'];
  await mustRun(['npm', 'ci', ...type, '--ignore-scripts', '--no-audit', '--no-fund'], {
    timeoutMs: diskTimeoutMs,
    cwd: work,
  });
  await mustRun(
    ['npm', 'install', '--global', '--prefix', join(tree, 'usr/local'), '--no-audit', '--no-fund', ownNpm],
    { timeoutMs: diskTimeoutMs },
  );
  mkdirSync(join(tree, checkout), { recursive: true });
  await mustRun(['mv', join(work, 'node_modules'), join(tree, checkout)], { timeoutMs: diskTimeoutMs });
  rmSync(work, { recursive: true });
}

function furnish(tree: string, publicKey: string): void {
  for (const [path, text] of Object.entries({ ...files, 'root/.ssh/authorized_keys': publicKey })) {
    mkdirSync(join(tree, path, '..'), { recursive: true });
    writeFileSync(join(tree, path), text, { mode: path.startsWith('root/') ? 0o600 : 0o644 });
  }
  const units = join(tree, 'etc/systemd/system');
  for (const unit of masked) replaceByLink(join(units, unit), '/dev/null');
  mkdirSync(join(units, 'multi-user.target.wants'), { recursive: true });
  replaceByLink(
    join(units, 'multi-user.target.wants/systemd-networkd.service'),
    '/lib/systemd/system/systemd-networkd.service',
  );
  replaceByLink(join(tree, 'etc/resolv.conf'), '/run/systemd/resolve/resolv.conf');
  chmodSync(join(tree, 'root/.ssh'), 0o700);
}

function replaceByLink(path: string, target: string): void {
  rmSync(path, { force: true });
  symlinkSync(target, path);
}
