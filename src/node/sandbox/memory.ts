import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { DriverName, MemoryAbility } from '../../protocol/node.ts';
import type { NodeContext } from '../context.ts';
import type { Slot } from '../layout.ts';
import type { SandboxVolume } from '../../protocol/volume.ts';
import type { CheckpointSource } from '../snapshot/checkpoint.ts';
import type { RestoreHost } from '../snapshot/restore.ts';
import { slotMountPoint } from './slot-disk.ts';

/** What keeps the memory of sandboxes on this node, or why nothing does. */
export type Memory = { kept: true; host: RestoreHost } | { kept: false; reason: string };

/** Why gVisor keeps no memory. */
const gvisorReason = 'gVisor’s own checkpoints are not used: programs that wait by epoll, the agent among them, do not all survive a restore';

/** What can be kept of the memory of a driver's sandboxes. */
export function memoryAbilityOf({ memory }: NodeContext, driver: DriverName): MemoryAbility {
  if (driver === 'gvisor') return { kept: false, reason: gvisorReason };
  return memory.kept ? { kept: true } : memory;
}

/** Fails with `precondition` and the reason where memory can't be kept. */
export function requireMemory({ memory }: NodeContext, driver: DriverName = 'crun'): RestoreHost {
  if (driver === 'gvisor') throw new AtollError('precondition', `the memory of this sandbox can't be kept: ${gvisorReason}`);
  if (memory.kept) return memory.host;
  throw new AtollError('precondition', `the memory of sandboxes can't be kept on this node: ${memory.reason}`);
}

/** Where a paused sandbox keeps its memory. */
export function memoryOf(node: NodeContext, sandboxId: string): string {
  return join(node.records.keptOf(sandboxId), 'memory');
}

/** The same, and what is there while it is made and after it was used. */
export function everyMemoryOf(node: NodeContext, sandboxId: string): string[] {
  const memory = memoryOf(node, sandboxId);
  return [memory, `${memory}.partial`, staleMemoryOf(node, sandboxId)];
}

export function staleMemoryOf(node: NodeContext, sandboxId: string): string {
  return `${memoryOf(node, sandboxId)}.stale`;
}

/** A sandbox in a slot, as something to be checkpointed. Its layers are mounted. */
export async function checkpointSource(node: NodeContext, slot: Slot, { pid, disk, layers, volumes = [] }: { pid: number; disk: string; layers: string[]; volumes?: SandboxVolume[] }): Promise<CheckpointSource> {
  const { driver } = node;
  return {
    pid,
    group: {
      freeze: () => driver.freeze(slot),
      hold: () => driver.hold(slot),
      thaw: () => driver.thaw(slot),
      processes: () => driver.processes(slot),
    },
    disk,
    diskMount: slotMountPoint(node, slot),
    layers: await Promise.all(layers.map(digest => node.layers.mount(digest))),
    volumes: volumes.map(({ path }) => path),
  };
}

/**
 * Says of a failed checkpoint what it means: that this sandbox has something that can't be kept is its state, and no
 * trouble of the node that passes.
 */
export function explainCheckpoint(error: unknown): unknown {
  if (!(error instanceof AtollError) || error.code !== 'unavailable' || !error.detail?.startsWith('checkpoint')) return error;
  return new AtollError('precondition', error.message, { fields: error.fields, cause: error });
}

/** For the agent of a sandbox that goes on from its memory: nobody else who goes on from it draws the same random numbers. */
export function freshEntropy(): string {
  return randomBytes(64).toString('base64');
}
