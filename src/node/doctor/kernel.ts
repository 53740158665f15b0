import { readFileSync } from 'node:fs';
import { release } from 'node:os';
import { tryCommand } from '../../base/process/command.ts';
import { limited, missing, ok, type Probe } from './probe.ts';
import { openUserNamespace } from './user-namespace.ts';

/**
 * The oldest kernel, major and minor, that Atoll has run on (docs/hosts.md). Overlay and EROFS take idmapped mounts
 * since 5.19, and no distribution maintains a kernel between the two.
 */
export const kernelMin = [6, 1] as const;
const openFilesWanted = 65_536;

/** What the kernel itself must offer: its version, namespaces, seccomp, limits. */
export const kernelProbes: Probe[] = [
  {
    name: 'kernel',
    needed: true,
    look() {
      const version = release();
      const [major = 0, minor = 0] = version.split('.').map(Number);
      const enough = major > kernelMin[0] || (major === kernelMin[0] && minor >= kernelMin[1]);
      return enough
        ? ok(version)
        : missing(
            `${version}; ${kernelMin.join('.')} or newer is needed`,
            'Install a newer kernel (Debian: from backports; Ubuntu: the HWE kernel) and reboot.',
          );
    },
  },
  {
    name: 'root',
    needed: true,
    look: () =>
      process.getuid?.() === 0 ? ok('running as root') : missing('not running as root', 'Run it with sudo.'),
  },
  {
    name: 'user namespaces',
    needed: true,
    remedy: 'Allow them: `sysctl user.max_user_namespaces=65536`.',
    async look() {
      await using namespace = await openUserNamespace();
      return ok(`IDs from ${namespace.baseId} mapped`);
    },
  },
  {
    name: 'other namespaces',
    needed: true,
    remedy: 'The kernel must be built with PID, IPC, UTS, NET and CGROUP namespaces.',
    async look() {
      await tryCommand(['unshare', '--pid', '--fork', '--mount', '--ipc', '--uts', '--net', '--cgroup', 'true']);
      return ok('pid, mount, ipc, uts, net, cgroup');
    },
  },
  {
    name: 'seccomp',
    needed: true,
    remedy: 'The kernel must be built with CONFIG_SECCOMP_FILTER.',
    look: () => ok(readFileSync('/proc/sys/kernel/seccomp/actions_avail', 'utf8').trim()),
  },
  {
    name: 'open files',
    needed: false,
    look() {
      const hard = Number(/^Max open files\s+\d+\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 0);
      if (hard >= openFilesWanted) return ok(`up to ${hard} for one process`);
      return limited(
        `up to ${hard} for one process, in sandboxes too`,
        `Raise the hard limit of open files to ${openFilesWanted} for root (systemd: LimitNOFILE=).`,
      );
    },
  },
];
