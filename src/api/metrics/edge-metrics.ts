import type { Metric } from '../../base/telemetry/meter.ts';
import type { EdgeStats } from '../../protocol/directory.ts';

/** Metrics of what is open at the edge, for the operator. */
export function edgeMetrics({
  clientConnections,
  clientConnectionsMax,
  evictedClients,
  refusedClients,
  inSandboxes,
  upstreamConnections,
}: EdgeStats): Metric[] {
  return [
    {
      name: 'atoll_edge_connections',
      help: 'Open connections: of clients, and to the API and into sandboxes, idle ones included',
      kind: 'gauge',
      samples: [
        { labels: { side: 'client' }, value: clientConnections },
        { labels: { side: 'upstream' }, value: upstreamConnections },
      ],
    },
    {
      name: 'atoll_edge_client_connections_max',
      help: 'How many connections of clients there can be, by the limit of open files',
      kind: 'gauge',
      samples: [{ value: clientConnectionsMax }],
    },
    {
      name: 'atoll_edge_full_total',
      help:
        'Newcomers to a full edge: those that took the place of an idle connection, and those for whom there was ' +
        'none',
      kind: 'counter',
      samples: [
        { labels: { newcomer: 'seated' }, value: evictedClients },
        { labels: { newcomer: 'refused' }, value: refusedClients },
      ],
    },
    {
      name: 'atoll_edge_sandbox_requests_in_flight',
      help: 'Requests and upgraded connections that are in sandboxes',
      kind: 'gauge',
      samples: [{ value: inSandboxes }],
    },
  ];
}
