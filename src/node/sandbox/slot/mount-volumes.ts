import type { SandboxVolume } from '../../../protocol/volume.ts';
import type { Slot } from '../../layout.ts';
import type { Volumes } from '../../volumes/volumes.ts';
import type { Processes } from './processes.ts';

/** A volume of a sandbox: its root in the helper's mount namespace, and where the sandbox sees it. */
export type HeldVolume = { source: string; path: string };

/**
 * Mounts its volumes in a sandbox that has its root and runs nothing of its user's yet; they are held until the slot
 * is released. Errors: `not_found`, `invalid` (a place where nothing can be mounted).
 */
export async function mountVolumes(
  volumes: Volumes,
  { slot, driver, pid }: Processes,
  wanted: SandboxVolume[],
): Promise<void> {
  const held = await holdVolumes(volumes, slot, wanted);
  await volumes.change(volumesAround(wanted), async () => {
    for (const volume of held) await driver.mountVolume(slot, pid, volume);
  });
}

/**
 * The volumes of a sandbox that others are mounted inside of: mounting one there makes its directory, and has to wait
 * while the outer one is held still. `inner`: the volumes that are to be mounted.
 */
export function volumesAround(wanted: readonly SandboxVolume[], inner = wanted): string[] {
  const isAround = (outer: string) => inner.some(({ path }) => path.startsWith(`${outer}/`));
  return wanted.filter(({ path }) => isAround(path)).map(({ volumeId }) => volumeId);
}

/** Keeps the volumes of a slot mounted on the node until it is released. Volumes inside of others come later. */
export async function holdVolumes(volumes: Volumes, slot: Slot, wanted: SandboxVolume[]): Promise<HeldVolume[]> {
  if (wanted.length === 0) return [];
  const ordered = wanted.toSorted((a, b) => a.path.length - b.path.length);
  const roots = await volumes.hold(
    slot,
    ordered.map(({ volumeId }) => volumeId),
  );
  return ordered.map(({ path }, index) => ({ path, source: roots[index] ?? '' }));
}
