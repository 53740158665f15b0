import type { SandboxResources } from '../../protocol/node.ts';
import type { DriverName } from '../../protocol/driver.ts';
import type { Slot } from '../layout.ts';
import type { Used } from '../numbers/own-files.ts';
import type { NetworkNamespace } from '../native/netns.ts';

/** A process of a sandbox that was started. */
type StartedProcess = {
  /** The sandbox's first process, in the host's numbers. */
  pid: number;
  /**
   * Settles when its agent has closed the descriptor that init has left to it, which it does once it serves, or when
   * the agent has ended: a sign that a look is worthwhile, and no more.
   */
  announced: Promise<void>;
};

/** What a sandbox's root is made of: mounted layers, lowest first, and the sandbox's own mounted disk above them. */
type Root = { layers: string[]; disk: string };

/** A root that a sandbox starts with, and directories, owners shifted, that are mounted in it. */
export type StartRoot = Root & {
  volumes: { point: string; path: string }[];
  /** Null: the agent is told the name once, before any program runs. Absent: a name that all such sandboxes have. */
  hostname?: string | null | undefined;
};

/** What the sandboxes of a driver can do; everything in the node that depends on it reads this. */
type Capabilities = {
  /**
   * Sandboxes start without a root file system and get it, their limits, their volumes and more mounts later: they can
   * wait in a pool, and a directory can be shown in one that runs. If false, `start` gets the root.
   */
  adoptsRoot: boolean;
  /**
   * Null: CRIU can checkpoint their processes, if the host can. Else why their memory can't be kept, for the caller.
   */
  withoutCheckpoints: string | null;
  /** Their network is the kernel's own: they have IPv6 if the host has it. */
  hasIpv6: boolean;
};

/** How sandboxes are isolated from the host and from each other. One conformance suite runs against every driver. */
export type Driver = {
  name: DriverName;
  capabilities: Capabilities;
  /**
   * Starts the processes of a sandbox; `root` is null exactly if the driver adopts roots. `controlToken` reaches its
   * init by a pipe; programs read `bootId` in /proc/sys/kernel/random/boot_id if the driver can set that. A failed
   * start leaves nothing.
   */
  start(
    slot: Slot,
    options: { controlToken: string; bootId: string; resources: SandboxResources; root: StartRoot | null },
  ): Promise<StartedProcess>;
  /** Lets a started sandbox continue once its link to the host is there. Absent: it already runs. */
  begin?(slot: Slot, pid: number): Promise<void>;
  /** Gives a sandbox the host name that its kernel reports. Absent: it has the name from its start. */
  nameHost?(pid: number, name: string): Promise<void>;
  /**
   * Puts the root file system in place, if it is not there from the start. Fails with `invalid`, like `start` with a
   * root, if a directory of the platform is a link or a file in it.
   */
  giveRoot(slot: Slot, pid: number, root: Root): Promise<void>;
  /**
   * Shows a directory of the helper's namespace in a sandbox that has its root, owners shifted. Fails with `invalid`
   * if a link or a file is on the way to `path`.
   */
  mountVolume(slot: Slot, pid: number, options: { source: string; path: string }): Promise<void>;
  /** The way into the network of a sandbox whose first process is `pid`. Throws if that has ended. */
  openNetwork(slot: Slot, pid: number): NetworkNamespace;
  /** Changes the size of a standby sandbox, which has no root yet. */
  resize(slot: Slot, pid: number, resources: SandboxResources): Promise<void>;
  /** Gives the processes of a sandbox that is about to end all the processor time that they can get. */
  hasten(slot: Slot): void;
  /**
   * Freezes every process of a sandbox; resolves when they are frozen. Fails with `unavailable` if one can't be
   * frozen, and all run on.
   */
  freeze(slot: Slot): Promise<void>;
  /** Lets a frozen sandbox run on. One that is not frozen is fine. */
  thaw(slot: Slot): void;
  /** Ends the processes of a frozen sandbox without letting any of them do anything more. */
  killFrozen(slot: Slot): void;
  /** The sandbox's control group, relative to the root of each hierarchy. */
  cgroupPath(slot: Slot): string;
  /** Begins to freeze every process, for processes that are still stopped for another reason; `frozen` waits for it. */
  beginFreeze(slot: Slot): void;
  /**
   * Resolves when every process is frozen, after `beginFreeze`. Fails with `unavailable` if one is not frozen in time:
   * none of the others runs on.
   */
  frozen(slot: Slot): Promise<void>;
  isFrozen(slot: Slot): boolean;
  /** All processes of a sandbox, in the host's numbers. */
  processes(slot: Slot): number[];
  /**
   * Makes the files that stand in for the kernel's in a sandbox that is restored instead of started, and answers their
   * directory.
   */
  makeOwnFiles(slot: Slot, facts: { bootId: string; resources: SandboxResources }): string;
  /** Lets programs in the sandbox read its current use. */
  refreshOwnFiles(slot: Slot, resources: SandboxResources, used: Used): void;
  /** Kills the remaining processes, until there are none. */
  endProcesses(slot: Slot): Promise<void>;
  /** Removes what the runtime keeps of a sandbox. Its processes are killed if any are left. Repeatable. */
  remove(slot: Slot): Promise<void>;
  /** Slots of which the runtime still keeps something. */
  leftovers(): Set<number>;
  /** Bytes that its processes use. */
  memoryUsed(slot: Slot): number;
  outOfMemoryKills(slot: Slot): number;
  /** Removes what the driver itself keeps on the host, when no slot is in use. */
  retire(): Promise<void>;
};
