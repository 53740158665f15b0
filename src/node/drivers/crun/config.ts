import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { idsPerSandbox, type Slot } from '../../layout.ts';
import { ownFiles } from '../../numbers/own-files.ts';
import type { SandboxResources } from '../../../protocol/node.ts';

/** Open files of one process in a sandbox, if the host allows that many. */
const openFilesMax = 65_536;
/**
 * Bytes of a core file: none at all. If the host hands cores to a program (`core_pattern` with a pipe), that program
 * would run as the host's root on a stranger's memory, whatever the limit; but a limit of 1 tells the kernel that the
 * dying process is such a program itself, and then no program is run (core(5), fs/coredump.c). The system call filter
 * keeps a sandbox from setting another limit.
 */
const coreLimit = 1;
/** Terminals of one sandbox. */
export const terminalsMax = 256;
/**
 * Bytes of the tmpfs on /dev/shm: half of the memory, as on any Linux machine (tmpfs(5)). They count as the sandbox's
 * memory too.
 */
export function sharedMemoryBytes({ memoryMiB }: SandboxResources): number {
  return (memoryMiB * 1024 ** 2) / 2;
}

/**
 * What root in a sandbox may do there. None of it reaches beyond the sandbox's user namespace:
 * owners, users, ports below 1024, ping, chroot and its own processes.
 */
export const capabilities = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FSETID',
  'FOWNER',
  'NET_RAW',
  'SETGID',
  'SETUID',
  'SETFCAP',
  'SETPCAP',
  'NET_BIND_SERVICE',
  'SYS_CHROOT',
  'KILL',
].map(name => `CAP_${name}`);

/** Files that reveal the host's devices, disks, memory and other sandboxes' use of them. */
export const maskedFiles = [
  'buddyinfo',
  'cmdline',
  'config.gz',
  'diskstats',
  'interrupts',
  'iomem',
  'ioports',
  'kallsyms',
  'kcore',
  'keys',
  'key-users',
  'kmsg',
  'kpagecgroup',
  'kpagecount',
  'kpageflags',
  'latency_stats',
  'mdstat',
  'modules',
  'pagetypeinfo',
  'partitions',
  'sched_debug',
  'schedstat',
  'slabinfo',
  'softirqs',
  'timer_list',
  'timer_stats',
  'vmallocinfo',
  'zoneinfo',
].map(name => `/proc/${name}`);
/** Directories of /proc that are hidden like the files above. */
export const maskedDirectories = ['acpi', 'asound', 'driver', 'fs', 'pressure', 'scsi'].map(name => `/proc/${name}`);

/**
 * The directories of sysfs that a sandbox has: programs count processors and memory nodes by them. Everything else
 * there describes the host: its devices, its disks and the files behind them.
 */
export const shownOfSysfs = ['/sys/devices/system/cpu', '/sys/devices/system/node'].filter(path => existsSync(path));

/** Devices of the host that are shown in a sandbox. Source: runtime-spec 1.0, "Default Devices". */
export const shownDevices = ['null', 'zero', 'full', 'random', 'urandom', 'tty'].map(name => `/dev/${name}`);

const readonlyPaths = ['/proc/bus', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

/** What is the same in every sandbox's configuration, as long as the node runs. */
type HostFacts = { openFiles: number; networkSettings: Record<string, string>; seccompFilter: string };

/** Reads facts about the host once: otherwise each start would read and encode them again. */
export function hostFactsOf(seccompFilter: Uint8Array): HostFacts {
  return {
    openFiles: ownOpenFilesMax(),
    networkSettings: networkSettings(),
    seccompFilter: Buffer.from(seccompFilter).toString('base64'),
  };
}

/** The OCI configuration (runtime-spec 1.0) of a standby sandbox: everything but its root file system. */
export function standbyConfig(options: {
  slot: Slot;
  skeleton: string;
  agentDir: string;
  /** Where the sandbox's own files are that stand in for the kernel's. */
  ownFilesDir: string;
  /** A tree of empty directories, with one for each mount below /sys. */
  sysDir: string;
  hostname: string;
  host: HostFacts;
  resources: SandboxResources;
}): unknown {
  const { slot } = options;
  const { openFiles, networkSettings, seccompFilter } = options.host;
  const ids = [{ containerID: 0, hostID: slot.baseId, size: idsPerSandbox }];
  return {
    ociVersion: '1.0.2',
    annotations: { 'run.oci.seccomp_bpf_data': seccompFilter },
    process: {
      user: { uid: 0, gid: 0 },
      args: ['/.agent/init'],
      env: [],
      cwd: '/',
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      // sudo needs it; the user namespace is what bounds the power gained.
      noNewPrivileges: false,
      rlimits: [
        { type: 'RLIMIT_NOFILE', soft: openFiles, hard: openFiles },
        { type: 'RLIMIT_CORE', soft: coreLimit, hard: coreLimit },
      ],
    },
    root: { path: options.skeleton, readonly: true },
    hostname: options.hostname,
    mounts: mounts(options),
    linux: {
      namespaces: ['pid', 'mount', 'ipc', 'uts', 'network', 'user', 'cgroup'].map(type => ({ type })),
      uidMappings: ids,
      gidMappings: ids,
      sysctl: networkSettings,
      maskedPaths: [...maskedFiles, ...maskedDirectories],
      readonlyPaths,
    },
  };
}

/** native/snapshot-program.c gives a restored sandbox the same settings. */
function networkSettings(): Record<string, string> {
  return {
    'net.ipv4.ping_group_range': `0 ${idsPerSandbox - 1}`,
    // All users of a sandbox belong to its owner, so a server on port 80 need not be root's.
    'net.ipv4.ip_unprivileged_port_start': '0',
    // Programs that prefer multipath TCP, like Go's servers, get plain TCP: only plain TCP can be checkpointed.
    ...(existsSync('/proc/sys/net/mptcp/enabled') && { 'net.mptcp.enabled': '0' }),
  };
}

function mounts({
  agentDir,
  ownFilesDir,
  sysDir,
  resources,
}: {
  agentDir: string;
  ownFilesDir: string;
  sysDir: string;
  resources: SandboxResources;
}) {
  const mount = (destination: string, type: string, source: string, ...options: string[]) => ({
    destination,
    type,
    source,
    options,
  });
  return [
    mount('/proc', 'proc', 'proc', 'nosuid', 'noexec', 'nodev'),
    mount('/dev', 'tmpfs', 'tmpfs', 'nosuid', 'strictatime', 'mode=755', 'size=1024k'),
    mount(
      '/dev/pts',
      'devpts',
      'devpts',
      'nosuid',
      'noexec',
      'newinstance',
      'ptmxmode=0666',
      'mode=0620',
      'gid=5',
      `max=${terminalsMax}`,
    ),
    mount('/dev/shm', 'tmpfs', 'shm', 'nosuid', 'nodev', 'mode=1777', `size=${sharedMemoryBytes(resources)}`),
    mount('/dev/mqueue', 'mqueue', 'mqueue', 'nosuid', 'noexec', 'nodev'),
    mount('/sys', 'bind', sysDir, 'bind', 'ro', 'nosuid', 'noexec', 'nodev'),
    ...shownOfSysfs.map(path => mount(path, 'bind', path, 'bind', 'ro', 'nosuid', 'noexec', 'nodev')),
    mount('/sys/fs/cgroup', 'cgroup', 'cgroup', 'nosuid', 'noexec', 'nodev', 'relatime', 'ro'),
    ...Object.entries(ownFiles).map(([path, name]) =>
      mount(path, 'bind', join(ownFilesDir, name), 'bind', 'ro', 'nosuid', 'noexec', 'nodev'),
    ),
    mount('/.agent', 'bind', agentDir, 'bind', 'ro', 'nosuid', 'nodev'),
  ];
}

/**
 * Open files of one process. Raising the limit needs CAP_SYS_RESOURCE, which root in a container or a VM service may
 * lack.
 */
export function ownOpenFilesMax(): number {
  return Math.min(
    openFilesMax,
    Number(readFileSync('/proc/self/limits', 'utf8').match(/^Max open files\s+\d+\s+(\d+)/m)?.[1] ?? 4096),
  );
}
