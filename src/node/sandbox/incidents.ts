import { createJournal } from '../../base/journal.ts';
import type { IncidentsPage, IncidentsCursor, SandboxIncident } from '../../protocol/node.ts';

/**
 * Up to this many unread incidents are kept: far more than the sandboxes that can run. The api finds further ends by
 * comparing.
 */
const incidentsMax = 10_000;

/** What happens to sandboxes by itself, for the api to read; see `NodeProtocol.incidents`. */
export type Incidents = {
  report(incident: SandboxIncident): void;
  read(after: IncidentsCursor | null, waitMs: number, signal?: AbortSignal): Promise<IncidentsPage>;
};

/** No incidents yet. */
export function createIncidents(): Incidents {
  const journal = createJournal<SandboxIncident>(incidentsMax);
  return {
    report: incident => journal.append(incident),
    async read(after, waitMs, signal) {
      const { items, next } = await journal.read(after, waitMs, signal);
      return { incidents: items, next };
    },
  };
}
