import { readFileSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import type { NodeContext } from '../context.ts';
import { endAllStanding } from './standing.ts';

/** What a new sandbox must leave of the host's memory, on top of its own smallest need. */
const memoryReserveBytes = 512 * 1024 ** 2;

/**
 * Refuses a sandbox that would put those that run at risk, after paused ones that stand still have made room.
 * Fails with `unavailable`, and with `no_space` where the disk has only its reserve left.
 */
export async function admit(node: NodeContext): Promise<void> {
  node.space.require('another sandbox');
  if (availableMemory() < memoryReserveBytes) await endAllStanding(node);
  const available = availableMemory();
  if (available < memoryReserveBytes) refuse('memory', available, memoryReserveBytes);
}

function availableMemory(): number {
  return Number(/^MemAvailable: +(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0) * 1024;
}

function refuse(what: string, freeBytes: number, reserveBytes: number): never {
  const mib = (bytes: number) => Math.floor(bytes / 1024 ** 2);
  throw new AtollError('unavailable', `this node is short of ${what}: ${mib(freeBytes)} MiB are free, ${mib(reserveBytes)} MiB must stay free`, {
    detail: 'sandbox_capacity_unavailable',
  });
}
