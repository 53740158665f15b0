import type { SandboxNetwork, SandboxResources } from '../../../protocol/node.ts';
import type { SandboxVolume } from '../../../protocol/volume.ts';
import type { Driver } from '../../drivers/driver.ts';

/** Processes that begin anew on layers, with a root, a network policy and volumes. */
export type BeginOrder = {
  /** Names the sandbox in what is logged of its network. */
  sandboxId: string;
  /** Whose starts it is one of; absent: nobody waits for it yet, or nobody knows who. */
  teamId?: string;
  /** Absent: one that all such sandboxes have. Null: see `StartRoot`. */
  hostname?: string | null;
  driver: Driver;
  /** Layer digests, lowest first. */
  layers: string[];
  resources: SandboxResources;
  network: SandboxNetwork;
  volumes: SandboxVolume[];
  /** The image of a disk that exists, of a sandbox that boots again; null: a new one, at the slot's place. */
  disk: string | null;
};
