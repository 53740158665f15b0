import type { Log } from '../base/telemetry/log.ts';
import type { Route } from '../protocol/directory.ts';
import type { Dial, FarEnds, SandboxDirectory } from './directory/directory.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import type { Http2Turns } from './http2-turns.ts';
import type { LargeHeads } from './clients/large-heads.ts';
import type { EdgeLimits } from './limits.ts';
import type { KnownProtocols } from './upstream/known-protocols.ts';
import { SandboxTraffic } from './upstream/sandbox-traffic.ts';
import type { Teams } from './upstream/team-traffic.ts';
import type { WaitingBytes } from './waiting-bytes.ts';
import type { upstreamHandlers } from './upstream/upstream.ts';
import type { UpstreamPool } from './upstream/pool.ts';

/** A client's connection as the sweep sees it. */
export type OpenClient = {
  /** When it must end, on the edge's clock. */
  readonly deadlineMs: number;
  expired(): void;
  terminate(): void;
  /** Ends it in order after its current request. */
  retire(): void;
};

/** What all client connections work with. */
export type ConnectionContext = {
  readonly limits: EdgeLimits;
  readonly log: Log;
  /** Trust the clients' `X-Forwarded-*`: the clients are load balancers. */
  readonly trustForwardedHeaders: boolean;
  /** Milliseconds, advanced by the sweep: precise enough for timeouts, and costs no system call per event. */
  readonly clock: { nowMs: number };
  /** The head being parsed and forwarded. Nobody may keep it: the next connection's event overwrites it. */
  readonly requestHead: RequestHead;
  readonly responseHead: ResponseHead;
  /** Where a message to send is assembled. The next event overwrites it as well. */
  readonly scratch: Buffer;
  readonly turns: Http2Turns;
  readonly largeHeads: LargeHeads;
  readonly waiting: WaitingBytes;
  /** Every client; each HTTP/2 stream counts as one. */
  readonly clients: Set<OpenClient>;
  /** Connections accept no request after their current one. */
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

/** What requests to the API need. */
export type ApiWay = Common & { readonly apiSocketPath: string; readonly apiPool: UpstreamPool };

/** What requests into sandboxes need. */
export type SandboxWay = Common & {
  readonly directory: SandboxDirectory;
  readonly dial: Dial;
  /** The far ends of connections carried by other machines. */
  readonly farEnds?: FarEnds | undefined;
  readonly traffic: Map<string, SandboxTraffic>;
  readonly teams: Teams;
  readonly protocols: KnownProtocols;
  readonly turns: Http2Turns;
};

/** The traffic of a sandbox's running incarnation. Cuts what is left of an earlier one. */
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
