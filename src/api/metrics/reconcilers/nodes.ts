import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Nodes } from '../../placement/nodes.ts';
import type { NodeHistory } from '../node-history.ts';

/** How often this runs, milliseconds. */
export const nodeSamplesIntervalMs = 60_000;

/** Remembers what each node uses now; a node that does not answer gets no sample. */
export async function sampleNodes(deps: { clock: Clock; nodes: Nodes; nodeHistory: NodeHistory }): Promise<void> {
  const { clock, nodes, nodeHistory } = deps;
  await Promise.all(
    nodes.list().map(async ({ nodeId, protocol }) => {
      const [info, usage] = await Promise.all([protocol.info().catch(() => null), protocol.usage().catch(() => null)]);
      if (!info || !usage) return;
      nodeHistory.add(nodeId, {
        atSeconds: Math.floor(clock() / microsPerSecond),
        cpuPercent: usage.cpuPercent,
        memoryUsedBytes: usage.memoryUsedBytes,
        memoryTotalBytes: info.memoryBytes,
        disks: usage.disks.map(({ mountPoint, usedBytes, totalBytes }) => ({ mountPoint, usedBytes, totalBytes })),
      });
    }),
  );
}
