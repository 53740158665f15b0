import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxVolume } from '../../protocol/volume.ts';
import type { NodeContext } from '../context.ts';
import type { Slot } from '../layout.ts';
import { holdVolumes } from './mount-volumes.ts';

/** A volume, where the helper shows it for a sandbox that is about to start. */
export type ShownVolume = { path: string; source: string; point: string };

/** Volumes with owners as the sandbox has them, for one who passes as a stranger. */
export async function showVolumes(node: NodeContext, slot: Slot, volumes: SandboxVolume[]): Promise<ShownVolume[]> {
  const shown: ShownVolume[] = [];
  try {
    for (const [index, { path, source }] of (await holdVolumes(node, slot, volumes)).entries()) {
      const point = join(node.layout.mounts, `volume-${slot.name}-${index}`);
      mkdirSync(point, { recursive: true });
      await node.helper.call('mapped-mount', slot.baseId, source, point);
      shown.push({ path, source, point });
    }
    return shown;
  } catch (error) {
    await hideVolumes(node, shown);
    throw error;
  }
}

/** The sandbox has mounts of its own by then. */
export async function hideVolumes(node: NodeContext, shown: ShownVolume[]): Promise<void> {
  for (const { point } of shown) {
    await node.helper.call('unmount', point);
    rmSync(point, { recursive: true, force: true });
  }
}
