import type { SandboxResources } from '../../protocol/node.ts';
import type { Slot } from '../layout.ts';

/** What a started sandbox without a root file system is to its driver. */
export type StartedBlank = {
  /** The sandbox's first process, in the host's numbers. */
  pid: number;
};

/** How sandboxes are isolated from the host and from each other. One conformance suite runs against every driver. */
export type Driver = {
  name: string;
  /**
   * Starts the processes of a sandbox that has no root file system yet. `controlToken` reaches its init by a pipe;
   * `bootId` is what programs read in /proc/sys/kernel/random/boot_id.
   * A failed start leaves nothing.
   */
  startBlank(slot: Slot, options: { controlToken: string; bootId: string; resources: SandboxResources }): Promise<StartedBlank>;
  /** Puts the root file system in place: layers lowest first, and the sandbox's own mounted disk above them. */
  giveRoot(slot: Slot, pid: number, options: { layers: string[]; disk: string }): Promise<void>;
  setLimits(slot: Slot, resources: SandboxResources): void;
  /** Stops every process of a sandbox where it is; resolves when they stand still. Fails with `unavailable` where one does not, and all go on. */
  freeze(slot: Slot): Promise<void>;
  /** Lets a frozen sandbox go on. One that is not frozen is fine. */
  thaw(slot: Slot): void;
  /** Ends the processes of a frozen sandbox without letting one of them do anything more. */
  killFrozen(slot: Slot): void;
  /** Removes what the runtime keeps of a sandbox. Its processes are killed if any are left. Repeatable. */
  remove(slot: Slot): Promise<void>;
  /** Slots of which the runtime still keeps something. */
  leftovers(): Set<number>;
  outOfMemoryKills(slot: Slot): number;
  /** Removes what the driver itself keeps on the host. For when no slot is in use. */
  retire(): void;
};
