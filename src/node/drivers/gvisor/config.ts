import { accessAddress, idsPerSandbox, innerAddress, relayPort, type Slot } from '../../layout.ts';
import type { SandboxResources } from '../../../protocol/node.ts';
import { capabilities, ownOpenFilesMax, sharedMemoryBytes } from '../crun/config.ts';

/**
 * The OCI configuration (runtime-spec 1.0) of a sandbox under gVisor. Its devices, masked paths and seccomp filters are
 * gVisor's own.
 */
export function sandboxConfig(options: {
  slot: Slot;
  root: string;
  agentDir: string;
  /** Whether the root has a real directory /tmp. */
  hasTmp: boolean;
  volumes: { point: string; path: string }[];
  cgroupPath: string;
  hostname: string;
  /** Process 1 names the sandbox, and then gives that right up. */
  isNamedLater: boolean;
  resources: SandboxResources;
}): unknown {
  const { slot, root, resources } = options;
  const openFiles = ownOpenFilesMax();
  const naming = options.isNamedLater ? ['--named-later'] : [];
  const own = options.isNamedLater ? [...capabilities, 'CAP_SYS_ADMIN'] : capabilities;
  const ids = [{ containerID: 0, hostID: slot.baseId, size: idsPerSandbox }];
  const mount = (destination: string, type: string, source: string, ...flags: string[]) => ({
    destination,
    type,
    source,
    options: flags,
  });
  return {
    ociVersion: '1.0.2',
    process: {
      user: { uid: 0, gid: 0 },
      args: ['/.agent/init', 'serve', ...naming, '--relay', accessAddress.inside, String(relayPort), innerAddress],
      env: [],
      cwd: '/',
      capabilities: { bounding: own, effective: own, permitted: own },
      noNewPrivileges: false,
      rlimits: [
        { type: 'RLIMIT_NOFILE', soft: openFiles, hard: openFiles },
        { type: 'RLIMIT_CORE', soft: 0, hard: 0 },
      ],
    },
    root: { path: root },
    hostname: options.hostname,
    mounts: [
      mount('/proc', 'proc', 'proc'),
      mount('/dev', 'tmpfs', 'tmpfs'),
      mount('/dev/pts', 'devpts', 'devpts'),
      mount('/dev/shm', 'tmpfs', 'shm', 'nosuid', 'nodev', 'mode=1777', `size=${sharedMemoryBytes(resources)}`),
      mount('/sys', 'sysfs', 'sysfs', 'ro'),
      mount('/.agent', 'bind', options.agentDir, 'bind', 'ro'),
      // If nothing is mounted there, runsc puts a tmpfs: the files in /tmp would be in no snapshot, and count as
      // memory.
      ...(options.hasTmp ? [mount('/tmp', 'bind', `${root}/tmp`, 'bind', 'rw')] : []),
      ...options.volumes.map(({ point, path }) => mount(path, 'bind', point, 'bind', 'rw', 'nosuid', 'nodev')),
    ],
    linux: {
      namespaces: ['pid', 'mount', 'ipc', 'uts', 'network', 'user'].map(type => ({ type })),
      uidMappings: ids,
      gidMappings: ids,
      cgroupsPath: options.cgroupPath,
      // The limits are already set on the group; here they tell gVisor what to show as the machine's.
      resources: {
        memory: { limit: resources.memoryMiB * 1024 * 1024 },
        cpu: { quota: resources.cpuCount * 100_000, period: 100_000 },
      },
    },
  };
}
