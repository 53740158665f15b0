import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { patient, startingNoServices } from './apt.mjs';
import { distribution } from './host.mjs';
import { Problem } from './problem.mjs';
import { step } from './progress.mjs';
import { run } from './run.mjs';

/**
 * Packages that Atoll needs: the Debian package, how to see that it is there, and its purpose. `builds`: only for
 * set-up.
 */
export const needed = [
  {
    name: 'ca-certificates',
    file: '/etc/ssl/certs/ca-certificates.crt',
    why: 'trusts the servers that packages come from',
  },
  { name: 'crun', command: 'crun', why: 'starts sandboxes' },
  { name: 'nftables', command: 'nft', why: 'enforces the network policy' },
  { name: 'iproute2', command: 'ip', why: 'makes network interfaces' },
  { name: 'e2fsprogs', command: 'mkfs.ext4', why: 'makes the disk that limits a sandbox' },
  { name: 'erofs-utils', command: 'mkfs.erofs', why: 'packs template layers' },
  { name: 'mmdebstrap', command: 'mmdebstrap', why: 'makes the base template' },
  { name: 'mount', command: 'losetup', why: 'tries out loop devices, and mounts in builds' },
  { name: 'busybox-static', command: 'busybox', why: 'is the shell of images that have none' },
  { name: 'bash-static', command: 'bash-static', why: 'is the bash of images that have none' },
  { name: 'tar', command: 'tar', why: 'unpacks root filesystems' },
  { name: 'gcc', command: 'gcc', why: 'builds the native helper', builds: true },
  { name: 'libc6-dev', file: '/usr/include/stdio.h', why: 'builds the native helper', builds: true },
  { name: 'libseccomp-dev', file: '/usr/include/seccomp.h', why: 'compiles the filter of system calls', builds: true },
  {
    name: 'musl-tools',
    command: 'musl-gcc',
    why: 'builds the first process of a sandbox, without libraries',
    builds: true,
  },
];

/** Packages only for the tests. */
const neededByTests = [
  { name: 'docker-registry', command: 'docker-registry', why: 'the registry that builds fetch images from' },
  { name: 'attr', command: 'getfattr', why: 'shows extended attributes of layers' },
  { name: 'python3-venv', file: '/usr/share/python-wheels', why: 'installs the Python SDK that the tests drive' },
  {
    name: 'postgresql',
    file: '/usr/lib/postgresql',
    why: 'the database of a cluster; the tests start servers of their own',
  },
  {
    name: 'golang-github-containers-common',
    file: '/usr/share/containers/seccomp.json',
    why: 'the usual filter of system calls, which ours is compared with',
  },
  { name: 'git', command: 'git', why: 'clones this repository for the test of set-up' },
  // Chromium without its window takes half of the processor time. If a distribution has neither, the tests that need it
  // are skipped and say so.
  { name: 'chromium-headless-shell', command: 'chromium-headless-shell', why: 'opens the dashboard', optional: true },
  { name: 'curl', command: 'curl', why: 'speaks the interface in the words of its document' },
];

/** Packages only for the bench: what it compares the platform with. */
const neededByBench = [
  { name: 'nginx-light', command: 'nginx', why: 'is the proxy that the edge is measured beside', optional: true },
  { name: 'bubblewrap', command: 'bwrap', why: 'isolates programs with the least that there is', optional: true },
];

/** Packages only for the laboratory of hosts. */
const neededByLaboratory = [
  { name: 'qemu-system-x86', command: 'qemu-system-x86_64', why: 'emulates machines' },
  { name: 'qemu-system-arm', command: 'qemu-system-aarch64', why: 'emulates machines of arm64' },
  {
    name: 'qemu-user-static',
    command: 'qemu-aarch64-static',
    why: 'runs what their packages run when they are unpacked',
  },
  { name: 'qemu-utils', command: 'qemu-img', why: 'makes their disks' },
  { name: 'openssh-client', command: 'ssh', why: 'runs commands on them' },
  { name: 'git', command: 'git', why: 'lists the files of this repository' },
];

/** Installs missing packages with apt, saying which and why. On another distribution, names them. */
export async function installSystemPackages({ forTests = false, forBench = false, forLaboratory = false } = {}) {
  const wanted = [
    ...needed,
    ...(forTests ? neededByTests : []),
    ...(forBench ? neededByBench : []),
    ...(forLaboratory ? neededByLaboratory : []),
  ];
  await installOptional(missingOf(wanted.filter(({ optional }) => optional)));
  const missing = missingOf(wanted.filter(({ optional }) => !optional));
  if (missing.length === 0) return;
  const list = missing.map(({ name, why }) => `  ${name.padEnd(16)} ${why}`).join('\n');
  const { name, hasApt } = distribution();
  if (!hasApt) {
    throw new Problem(
      `Atoll needs these programs, and on ${name} it can't install them itself. Their Debian packages are:\n${list}\nInstall them and run this again.`,
    );
  }
  process.stderr.write(`These system packages are missing and will be installed with apt:\n${list}\n`);
  await step('Installing system packages', tell =>
    aptInstall(
      missing.map(entry => entry.name),
      tell,
    ),
  );
  const still = missingOf(missing);
  if (still.length > 0)
    throw new Problem(`apt installed its packages, but still missing: ${still.map(entry => entry.name).join(', ')}.`);
}

/** Installs optional packages, as far as apt has them. */
async function installOptional(missing) {
  if (missing.length === 0 || !distribution().hasApt) return;
  for (const { name, why } of missing) {
    try {
      await step(`Installing ${name}, which ${why}`, tell => aptInstall([name], tell));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      process.stderr.write(`${name} can't be had here; what needs it is skipped, and says so.\n`);
    }
  }
}

async function aptInstall(names, tell) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const command = ['apt-get', ...patient, 'install', '-y', '--no-install-recommends', ...names];
  const install = () => startingNoServices(() => run(command, { env, onLine: tell }));
  try {
    await install();
  } catch {
    // Package lists are missing on a fresh machine and old on a long-lived one.
    await run(['apt-get', ...patient, 'update'], { env, onLine: tell });
    await install();
  }
}

function missingOf(packages) {
  return packages.filter(({ command, file }) => (command ? !onPath(command) : !existsSync(file)));
}

/** Whether root finds the program: the sbin folders count even if the caller's PATH lacks them. */
function onPath(command) {
  const folders = new Set([
    ...(process.env.PATH ?? '').split(':'),
    '/usr/local/sbin',
    '/usr/sbin',
    '/sbin',
    '/usr/bin',
    '/bin',
  ]);
  return [...folders].some(folder => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
