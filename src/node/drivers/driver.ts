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
   * Starts the processes of a sandbox that has no root file system yet. `controlToken` reaches its init by a pipe.
   * A failed start leaves nothing.
   */
  startBlank(slot: Slot, options: { controlToken: string; resources: SandboxResources }): Promise<StartedBlank>;
  /** Puts the root file system in place: layers lowest first, and the sandbox's own mounted disk above them. */
  giveRoot(slot: Slot, pid: number, options: { layers: string[]; disk: string }): Promise<void>;
  setLimits(slot: Slot, resources: SandboxResources): void;
  /** Removes what the runtime keeps of a sandbox. Its processes are killed if any are left. Repeatable. */
  remove(slot: Slot): Promise<void>;
  /** Slots of which the runtime still keeps something. */
  leftovers(): Set<number>;
  outOfMemoryKills(slot: Slot): number;
  /** Removes what the driver itself keeps on the host. For when no slot is in use. */
  retire(): void;
};
