import type { SandboxVolume } from '../../protocol/volume.ts';
import type { NodeContext } from '../context.ts';
import type { Slot } from '../layout.ts';

/**
 * Mounts its volumes in a sandbox that has its root and runs nothing of its user's yet; they are held until the slot is
 * released. Errors: `not_found`, `invalid` (a place where nothing can be mounted).
 */
export async function mountVolumes(node: NodeContext, slot: Slot, pid: number, volumes: SandboxVolume[] = []): Promise<void> {
  for (const { source, path } of await holdVolumes(node, slot, volumes)) await node.driver.mountVolume(slot, pid, { source, path });
}

/** Keeps the volumes of a slot mounted on the node until it is released, and answers where. Those that are inside of others come later. */
export async function holdVolumes(node: NodeContext, slot: Slot, volumes: SandboxVolume[]): Promise<{ source: string; path: string }[]> {
  if (volumes.length === 0) return [];
  const ordered = volumes.toSorted((a, b) => a.path.length - b.path.length);
  const roots = await node.volumes.hold(slot, ordered.map(({ volumeId }) => volumeId));
  return ordered.map(({ path }, index) => ({ path, source: roots[index] ?? '' }));
}

/** The member of a record. */
export function volumesOf({ volumes }: { volumes?: SandboxVolume[] }): { volumes?: SandboxVolume[] } {
  return volumes === undefined || volumes.length === 0 ? {} : { volumes };
}
