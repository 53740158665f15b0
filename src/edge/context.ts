import type { Log } from '../base/log.ts';
import type { ClientTable } from './client-table.ts';
import type { Route } from '../protocol/directory.ts';
import type { Dial, SandboxDirectory } from './directory.ts';
import type { RequestHead } from './http/request-head.ts';
import type { ResponseHead } from './http/response-head.ts';
import type { EdgeLimits } from './limits.ts';
import { SandboxTraffic } from './sandbox-traffic.ts';
import type { Teams } from './team-traffic.ts';
import type { upstreamHandlers } from './upstream.ts';
import type { UpstreamPool } from './upstream-pool.ts';

/** A client's connection as the sweep sees it. */
export type OpenClient = {
  /** When it is to be ended, on the edge's clock. */
  readonly deadlineMs: number;
  expired(): void;
  terminate(): void;
  /** Ends it in order after its current request. */
  retire(): void;
};

/** What the connections of one edge share. */
export type EdgeContext = {
  readonly limits: EdgeLimits;
  readonly directory: SandboxDirectory;
  readonly dial: Dial;
  readonly log: Log;
  readonly apiSocketPath: string;
  /** Believe `X-Forwarded-*` of clients, which are load balancers then. */
  readonly trustForwardedHeaders: boolean;
  /** Milliseconds, moved on by the sweep: precise enough for timeouts, and no system call per event. */
  readonly clock: { nowMs: number };
  /** The head being parsed and sent on. Nothing may keep it: the next connection's event overwrites it. */
  readonly requestHead: RequestHead;
  readonly responseHead: ResponseHead;
  /** Where a message to send is put together. The same holds. */
  readonly scratch: Buffer;
  readonly apiPool: UpstreamPool;
  /** What hears the events of every upstream connection. */
  readonly upstreamHandlers: ReturnType<typeof upstreamHandlers>;
  readonly traffic: Map<string, SandboxTraffic>;
  readonly teams: Teams;
  /** Every client, each stream of HTTP/2 being one too. */
  readonly clients: Set<OpenClient>;
  /** Every connection of clients. */
  readonly table: ClientTable;
  /** No request is accepted on a connection after its current one. */
  stopping: boolean;
};

/** The traffic of a sandbox's running incarnation. What is left of an earlier one is cut. */
export function trafficOf(context: EdgeContext, { sandboxId, executionId, teamId }: Route): SandboxTraffic {
  const existing = context.traffic.get(sandboxId);
  if (existing !== undefined && existing.executionId === executionId) return existing;
  existing?.cut();
  const traffic = new SandboxTraffic(sandboxId, executionId, context.limits, context.teams.of(teamId));
  context.traffic.set(sandboxId, traffic);
  return traffic;
}
