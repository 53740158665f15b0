import type { NodeInfo } from '../../protocol/node.ts';
import type { NodeAllocation } from './node-status.ts';

/**
 * How often a machine's CPUs, where it does not say so itself, and its memory may be promised. Sandboxes wait most of
 * the time, and take what they use; beyond that the kernel of the machine ends the largest.
 */
const overcommit = { cpu: 4, memory: 1.5 } as const;
const bytesPerMiB = 1 << 20;

/** What of a machine is promised. */
type Room = {
  /** Shares, 1: all of it. */
  used: { cpu: number; memory: number };
  fits(size: { cpuCount: number; memoryMiB: number }): boolean;
  /** What is promised and what may be, for people. */
  text: string;
};

const nothing: NodeAllocation = { cpuCount: 0, memoryMiB: 0, sandboxes: 0, starting: 0 };

/** What of a machine is promised, and what fits beside it. A machine that has said nothing of itself has no room. */
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
