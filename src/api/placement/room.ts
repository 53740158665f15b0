import type { NodeInfo } from '../../protocol/node.ts';
import type { NodeAllocation } from './node-status.ts';

/**
 * How often a machine's memory, and its CPUs where it does not say so itself, may be promised. Sandboxes wait most of
 * the time, and take only what they use; if they need more, the machine's kernel ends the largest.
 */
const overcommit = { cpu: 4, memory: 1.5 } as const;
const bytesPerMiB = 1 << 20;

/** The promised part of a machine. */
type Room = {
  /** Shares; 1 means all of it. */
  used: { cpu: number; memory: number };
  fits(size: { cpuCount: number; memoryMiB: number }): boolean;
  /** What is promised and what may be, in words. */
  text: string;
};

const nothing: NodeAllocation = { cpuCount: 0, memoryMiB: 0, sandboxes: 0, starting: 0 };

/** The promised part of a machine, and what still fits. A machine that has not reported has no room. */
export function roomOf(info: NodeInfo | null | undefined, { cpuCount, memoryMiB, sandboxes } = nothing): Room {
  if (!info) return { used: { cpu: 1, memory: 1 }, fits: () => false, text: 'it has not said what it has' };
  const cpus = info.cpuCount * (info.cpuOvercommit ?? overcommit.cpu);
  const memory = (info.memoryBytes / bytesPerMiB) * overcommit.memory;
  return {
    used: { cpu: cpuCount / cpus, memory: memoryMiB / memory },
    fits: size =>
      cpuCount + size.cpuCount <= cpus && memoryMiB + size.memoryMiB <= memory && sandboxes < info.sandboxesMax,
    text:
      `${cpuCount} of ${Math.floor(cpus)} CPUs and ${memoryMiB} of ${Math.floor(memory)} MiB are promised, ` +
      `to ${sandboxes} sandboxes of ${info.sandboxesMax}`,
  };
}
