import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxVolume } from '../../../protocol/volume.ts';
import type { Layout, Slot } from '../../layout.ts';
import type { Helper } from '../../native/helper.ts';
import type { Volumes } from '../../volumes/volumes.ts';
import { holdVolumes, type HeldVolume } from './mount-volumes.ts';

/** A volume, where the helper shows it for a sandbox that is about to start. */
type ShownVolume = HeldVolume & { point: string };

/**
 * Shows volumes, with owners as the sandbox has them, for a program that starts the sandbox and counts as a stranger
 * meanwhile. Errors: `not_found`.
 */
export async function showVolumes(
  { volumes, helper, layout }: { volumes: Volumes; helper: Helper; layout: Layout },
  slot: Slot,
  wanted: SandboxVolume[],
): Promise<ShownVolume[]> {
  const shown: ShownVolume[] = [];
  try {
    for (const [index, { path, source }] of (await holdVolumes(volumes, slot, wanted)).entries()) {
      const point = join(layout.mounts, `volume-${slot.name}-${index}`);
      mkdirSync(point, { recursive: true });
      await helper.call('mapped-mount', { baseId: slot.baseId, source, at: point });
      shown.push({ path, source, point });
    }
    return shown;
  } catch (error) {
    await hideVolumes(helper, shown);
    throw error;
  }
}

/** Takes the shown volumes away: by then the sandbox has mounts of its own. */
export async function hideVolumes(helper: Helper, shown: ShownVolume[]): Promise<void> {
  for (const { point } of shown) {
    await helper.call('unmount', { at: point });
    rmSync(point, { recursive: true, force: true });
  }
}
