import { messageOf } from '../../../base/error.ts';
import type { IncidentsCursor, NodeProtocol } from '../../../protocol/node.ts';
import { recordIncident, recordMemoryLost } from './adoption.ts';
import type { IncidentDeps } from './adoption.ts';
import type { BusyExecutions } from '../rules/busy.ts';

/** How long a node waits for an incident before it answers that there was none. */
const waitMs = 30_000;
/** A node that does not answer is asked again after this time. */
const retryMs = 250;

/** Records the incidents of a node's sandboxes, in order, until it is stopped. */
export function followIncidents(
  deps: IncidentDeps & { busy: BusyExecutions },
  node: NodeProtocol,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const done = follow(deps, node, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

async function follow(
  deps: IncidentDeps & { busy: BusyExecutions },
  node: NodeProtocol,
  signal: AbortSignal,
): Promise<void> {
  let cursor: IncidentsCursor | null = null;
  while (!signal.aborted) {
    try {
      const { incidents, next } = await node.incidents(cursor, waitMs, signal);
      for (const incident of incidents) {
        const { reason } = incident;
        // One that can't be recorded must not hold up the others: adoption finds what became of its sandbox.
        const onError = (error: unknown) =>
          deps.log.error('an incident of a sandbox was not recorded', { ...incident, error: messageOf(error) });
        // This waits for other work under way, so nothing waits for it.
        if (reason === 'memory_lost') void recordMemoryLost(deps, node, incident).catch(onError);
        else await recordIncident(deps, { ...incident, reason }).catch(onError);
      }
      cursor = next;
    } catch (error) {
      if (signal.aborted) return;
      deps.log.warn('the node does not say what befell its sandboxes; it is asked again', { error: messageOf(error) });
      await Bun.sleep(retryMs);
    }
  }
}
