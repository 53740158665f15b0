import type { Log } from '../base/telemetry/log.ts';
import type { Route } from '../protocol/directory.ts';
import type { Dial, FarEnds, SandboxDirectory } from './directory/directory.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import type { Http2Turns } from './http2-turns.ts';
import type { EdgeLimits } from './limits.ts';
import type { KnownProtocols } from './upstream/known-protocols.ts';
import { SandboxTraffic } from './upstream/sandbox-traffic.ts';
import type { Teams } from './upstream/team-traffic.ts';
import type { upstreamHandlers } from './upstream/upstream.ts';
import type { UpstreamPool } from './upstream/pool.ts';

/** A client's connection as the sweep sees it. */
export type OpenClient = {
  /** When it is to be ended, on the edge's clock. */
  readonly deadlineMs: number;
  expired(): void;
  terminate(): void;
  /** Ends it in order after its current request. */
  retire(): void;
};

/** What connections of clients work with. */
export type ConnectionContext = {
  readonly limits: EdgeLimits;
  readonly log: Log;
  /** Believe `X-Forwarded-*` of clients, which are load balancers then. */
  readonly trustForwardedHeaders: boolean;
  /** Milliseconds, moved on by the sweep: precise enough for timeouts, and no system call per event. */
  readonly clock: { nowMs: number };
  /** The head being parsed and sent on. Nothing may keep it: the next connection's event overwrites it. */
  readonly requestHead: RequestHead;
  readonly responseHead: ResponseHead;
  /** Where a message to send is put together. The same holds. */
  readonly scratch: Buffer;
  readonly turns: Http2Turns;
  /** Every client, each stream of HTTP/2 being one too. */
  readonly clients: Set<OpenClient>;
  /** No request is accepted on a connection after its current one. */
  stopping: boolean;
};

/** What every request to a server needs. */
type Common = {
  readonly limits: EdgeLimits;
  readonly log: Log;
  readonly clock: { readonly nowMs: number };
  /** Hears the events of every upstream connection. */
  readonly upstreamHandlers: ReturnType<typeof upstreamHandlers>;
};

/** The way of requests to the API. */
export type ApiWay = Common & { readonly apiSocketPath: string; readonly apiPool: UpstreamPool };

/** The way of requests into sandboxes. */
export type SandboxWay = Common & {
  readonly directory: SandboxDirectory;
  readonly dial: Dial;
  /** The far ends of connections that other machines carry. */
  readonly farEnds?: FarEnds | undefined;
  readonly traffic: Map<string, SandboxTraffic>;
  readonly teams: Teams;
  readonly protocols: KnownProtocols;
  readonly turns: Http2Turns;
};

/** The traffic of a sandbox's running incarnation. What is left of an earlier one is cut. */
export function trafficOf(
  { traffic, limits, teams, protocols }: Pick<SandboxWay, 'traffic' | 'limits' | 'teams' | 'protocols'>,
  { sandboxId, executionId, teamId }: Route,
): SandboxTraffic {
  const existing = traffic.get(sandboxId);
  if (existing !== undefined && existing.executionId === executionId) return existing;
  existing?.cut();
  const own = new SandboxTraffic({ sandboxId, executionId }, limits, teams.of(teamId), protocols);
  traffic.set(sandboxId, own);
  return own;
}
