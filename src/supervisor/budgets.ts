import type { Budget } from './control-groups.ts';
import type { PartName } from './part-process.ts';

/**
 * Shares of the machine's memory. The node's includes its helper, egress proxies and builders, but not the sandboxes.
 */
const memoryParts: Readonly<Record<PartName, number>> = { node: 3 / 4, api: 1 / 4, edge: 1 / 4, gate: 1 / 4 };
/** The least that a part gets, however small the machine is. */
const memoryBytesMin = 512 << 20;
/** The other parts start no program; the runtime has some threads, and a few for each core. */
const tasks: Readonly<Record<PartName, number>> = { node: 16_384, api: 1_024, edge: 1_024, gate: 1_024 };

/** The budget of each process of the platform on a machine with that much memory. */
export function budgetsOf(memoryBytes: number): Record<PartName, Budget> {
  const of = (part: PartName): Budget => ({
    memoryBytes: Math.max(memoryBytesMin, Math.floor(memoryBytes * memoryParts[part])),
    tasksMax: tasks[part],
    isAlone: part !== 'node',
  });
  return { node: of('node'), api: of('api'), edge: of('edge'), gate: of('gate') };
}
