import type { SandboxNetwork, SandboxResources } from '../../../protocol/node.ts';
import type { SandboxVolume } from '../../../protocol/volume.ts';
import type { Driver } from '../../drivers/driver.ts';

/** Processes that begin anew on layers, with a root, a network policy and volumes. */
export type BeginOrder = {
  /** Names the sandbox in logs about its network. */
  sandboxId: string;
  /** The team whose starts it counts with; absent: nobody waits for it yet, or the team is not known. */
  teamId?: string;
  /** Absent: a name that all such sandboxes have. Null: see `StartRoot`. */
  hostname?: string | null;
  driver: Driver;
  /** Layer digests, lowest first. */
  layers: string[];
  resources: SandboxResources;
  network: SandboxNetwork;
  volumes: SandboxVolume[];
  /** The image of an existing disk, for a sandbox that boots again; null: a new one, at the slot's place. */
  disk: string | null;
};
