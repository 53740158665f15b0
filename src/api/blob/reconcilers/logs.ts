import { messageOf } from '../../../base/error.ts';
import { type Clock, microsPerSecond } from '../../../base/clock.ts';
import { forEachParallel } from '../../../base/concurrency/parallel.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Db } from '../../database/db.ts';
import { isNodeLost } from '../../cluster/store/nodes.ts';
import type { Nodes } from '../../placement/nodes.ts';
import { homesOf, endedWithoutLogs, recordLogsStored } from '../../sandbox/store/past.ts';
import type { StoredLogs } from '../rules/logs.ts';

/** How often this runs, milliseconds: until then the log of an ended sandbox is on its machine alone. */
export const logUploadIntervalMs = 5_000;
/** An agent's last lines may still be on their way. Seconds. */
const settleSeconds = 3;
/** Sandboxes of one round, and at a time. */
const sandboxesMax = 200;
const atOnce = 8;

/** Puts the logs of ended sandboxes into the store; logs on machines that are away wait for those. */
export async function storeLogs({
  clock,
  db,
  log,
  nodes,
  storedLogs,
}: {
  clock: Clock;
  db: Db;
  log: Log;
  nodes: Nodes;
  storedLogs: StoredLogs;
}): Promise<void> {
  if (!storedLogs.isUsable) return;
  const inReach = new Map(nodes.list().map(({ nodeId, protocol }) => [nodeId, protocol]));
  const beforeUs = clock() - settleSeconds * microsPerSecond;
  const ended = await endedWithoutLogs(db, { nodeIds: [...inReach.keys()], beforeUs, limit: sandboxesMax });
  await forEachParallel(ended, atOnce, async ({ sandboxId, nodeId }) => {
    const homes = new Set([nodeId, ...(await homesOf(db, sandboxId))]);
    try {
      // Wait for the part on a machine that will come back.
      for (const home of homes) if (!inReach.has(home) && !(await isNodeLost(db, home))) return;
      const machines = [...homes].flatMap(home => inReach.get(home) ?? []);
      if (await storedLogs.store(sandboxId, machines)) await recordLogsStored(db, sandboxId);
    } catch (error) {
      log.warn('the log of a sandbox is not in the store yet', { sandboxId, error: messageOf(error) });
    }
  });
}
