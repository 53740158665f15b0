import { join } from 'node:path';

/** How many sandboxes one installation can run at a time, standby and starting ones included. */
export const slotsMax = 1024;
/** User and group IDs of one sandbox. */
export const idsPerSandbox = 65_536;
/** Above the ranges that distributions hand out to users and to other container managers. */
const firstHostId = 0x7000_0000;

/** The address that every sandbox has inside: checkpoints and forks need no translation. */
export const innerAddress = '169.254.0.21';
/** The gateway that sandboxes use: the outer end of the link. */
export const gatewayAddress = '169.254.0.22';
/**
 * The IPv6 address that every sandbox has inside, if the host has a way out by IPv6. It is in a block of our own (RFC
 * 4193): if a name has addresses of both families, programs prefer IPv4 to it (RFC 6724).
 */
export const innerAddressV6 = 'fda7:110:5b3c::21';
/** The IPv6 gateway, which exists only on the link. */
export const gatewayAddressV6 = 'fe80::22';
/** Link-layer address of a sandbox's end of its link. */
export const innerMac = '02:a0:11:00:00:21';
/** Link-layer address of the host's end. */
export const outerMac = '02:a0:11:00:00:22';

/**
 * The two ends of the link by which the platform reaches a sandbox whose network stack is not the kernel's. It leads
 * nowhere else; all such sandboxes have the same addresses.
 */
export const accessAddress = { outside: '169.254.0.26', inside: '169.254.0.25' } as const;
/** Link-layer addresses of the two ends of that link. */
export const accessMac = { outside: '02:a0:11:00:00:26', inside: '02:a0:11:00:00:25' } as const;
/** The port, at the inner end, where the relay passes connections on to the sandbox's loopback (native/relay.c). */
export const relayPort = 49982;

/** These two numbers name everything of the host that one slot of one installation uses. */
export type Slot = {
  number: number;
  /** Name for the runtime and, below the installation's, for the cgroup. */
  name: string;
  /** First host user ID of the slot's range. */
  baseId: number;
  interfaceName: string;
  /** Stands for the sandbox outside of it. In 198.18.0.0/15, which no network routes (RFC 2544). */
  address: string;
  /** Stands for the sandbox outside of it, for IPv6. */
  addressV6: string;
  /** The host's source address for connections that the egress proxy makes for the sandbox. */
  proxyAddress: string;
};

/** A slot of an installation by its number, below `slotsMax`. */
export function slotOf(installation: number, number: number): Slot {
  const host = installation * 2 * slotsMax + number;
  return {
    number,
    name: `s${number}`,
    baseId: firstHostId + (installation * slotsMax + number) * idsPerSandbox,
    interfaceName: `at${installation}-${number}`,
    address: `198.18.${host >> 8}.${host & 255}`,
    addressV6: `fda7:110:5b3c:${(installation + 1).toString(16)}::1:${number.toString(16)}`,
    proxyAddress: `198.18.${(host + slotsMax) >> 8}.${host & 255}`,
  };
}

/** All slots of an installation. */
export function slotsOf(installation: number): Slot[] {
  return Array.from({ length: slotsMax }, (_, number) => slotOf(installation, number));
}

/** The network that holds all addresses of an installation's slots. */
export function slotNetwork(installation: number): string {
  return `198.18.${(installation * 2 * slotsMax) >> 8}.0/21`;
}

/** The network that holds the IPv6 addresses of an installation's slots. */
export function slotNetworkV6(installation: number): string {
  return `fda7:110:5b3c:${(installation + 1).toString(16)}::/64`;
}

/** The upper half of the slot network: the addresses that the egress proxy connects from. */
export function proxyNetwork(installation: number): string {
  return `198.18.${((installation * 2 + 1) * slotsMax) >> 8}.0/22`;
}

/** Where the egress proxy takes connections that the packet rules redirect to it. */
export function proxyListenAddress(installation: number): string {
  return `198.19.0.${installation + 1}`;
}

/**
 * Where names of the platform's domain lead inside sandboxes. Nothing has this address; the egress proxy answers for
 * it.
 */
export function platformInsideAddress(installation: number): string {
  return `198.19.1.${installation + 1}`;
}

/** The control group above those of all sandboxes of an installation. */
export function cgroupRootOf({ installation }: Pick<Layout, 'installation'>): string {
  return `/atoll${installation}`;
}

/** Where a node keeps its files. `data` survives a reboot of the host, `run` does not. */
export type Layout = {
  installation: number;
  data: string;
  run: string;
  /** The root of a sandbox before it has one. */
  skeleton: string;
  /** The /sys of a sandbox: empty directories to mount on. */
  sysTree: string;
  /** Copies of the agent, one for each build of it that sandboxes were started from. */
  agents: string;
  /** Where the helper shows the current agent to the runtime. */
  agentMount: string;
  /** The authority by which the egress proxy opens encrypted connections. */
  egressAuthority: string;
  layers: string;
  disks: string;
  /** A directory for each volume. */
  volumes: string;
  bundles: string;
  sandboxes: string;
  /** Logs of what sandboxes did, one directory each. */
  logs: string;
  /** Memory that snapshots keep, one directory each. */
  snapshots: string;
  /** What each sandbox has used, in one or two files, which stay for a while after it is gone. */
  metrics: string;
  runtimeState: string;
  /** A directory for each slot, with files that its programs read in place of the kernel's. */
  ownFiles: string;
  /** Mount points, used in the helper's mount namespace only. */
  mounts: string;
};

/** The layout of an installation: `dataDir` survives a reboot, `runDir` does not. */
export function layoutOf(dataDir: string, runDir: string, installation: number): Layout {
  const data = join(dataDir, 'node');
  return {
    installation,
    data,
    run: runDir,
    skeleton: join(runDir, 'skeleton'),
    sysTree: join(runDir, 'sys'),
    agents: join(data, 'agents'),
    agentMount: join(runDir, 'agent'),
    egressAuthority: join(data, 'egress-authority'),
    layers: join(data, 'layers'),
    disks: join(data, 'disks'),
    volumes: join(data, 'volumes'),
    bundles: join(runDir, 'bundles'),
    sandboxes: join(data, 'sandboxes'),
    logs: join(data, 'logs'),
    snapshots: join(data, 'snapshots'),
    metrics: join(data, 'metrics'),
    runtimeState: join(runDir, 'runtime'),
    ownFiles: join(runDir, 'own-files'),
    mounts: join(runDir, 'mounts'),
  };
}
