import { LargeHeads } from './clients/large-heads.ts';
import type { Log } from '../base/telemetry/log.ts';
import { ClientTable } from './clients/client-table.ts';
import type { EdgeStats } from '../protocol/directory.ts';
import type { ApiWay, ConnectionContext, SandboxWay } from './context.ts';
import type { Dial, FarEnds, SandboxDirectory } from './directory/directory.ts';
import { RequestHead } from '../http1/request-head.ts';
import { ResponseHead } from '../http1/response-head.ts';
import { Http2Turns } from './http2-turns.ts';
import { type EdgeLimits, limitsWithin } from './limits.ts';
import { type CurrentCertificate, listenPlain, listenTls, type Listener, type Taking } from './listeners.ts';
import { WaitingBytes } from './waiting-bytes.ts';
import { serveBy } from './request/serve.ts';
import { Share } from '../base/concurrency/share.ts';
import { KnownProtocols } from './upstream/known-protocols.ts';
import { Teams } from './upstream/team-traffic.ts';
import { upstreamHandlers } from './upstream/upstream.ts';
import { poolBounds, UpstreamPool } from './upstream/pool.ts';

/** What an edge needs. */
export type EdgeOptions = {
  readonly hostname: string;
  /** 0: any free port. */
  readonly port: number;
  /** Where the API listens. */
  readonly apiSocketPath: string;
  readonly directory: SandboxDirectory;
  readonly dial: Dial;
  /** Needed where sandboxes are on other machines. */
  readonly farEnds?: FarEnds;
  readonly log: Log;
  /** Trust the clients' `X-Forwarded-*`: only where nobody but a load balancer can reach the port. Default false. */
  readonly trustForwardedHeaders?: boolean;
  /** A second port that speaks TLS. */
  readonly tls?: TlsOptions;
  /** How many files the edge may hold open; the default limits shrink to fit. Default: no bound. */
  readonly descriptorsMax?: number;
  /** How much memory the edge may take; what waits has a quarter of it, if that is less than the default. */
  readonly memoryBytesMax?: number;
  /** Bounds that differ from the default limits. */
  readonly limits?: Partial<EdgeLimits>;
};

/** The port that speaks TLS. */
type TlsOptions = {
  readonly hostname: string;
  /** 0: any free port. */
  readonly port: number;
  /** Its holder may read the files and replaces it: new connections get the current one. */
  readonly certificate: CurrentCertificate;
  /** Offer HTTP/2 besides HTTP/1.1. Default true. */
  readonly http2?: boolean;
};

/** The one port of the platform. */
export type Edge = {
  readonly port: number;
  /** Null without TLS. */
  readonly tlsPort: number | null;
  /**
   * Cuts every connection into one execution of a sandbox, with a reset, so that no stream looks as if it had ended.
   * Call it as soon as the execution is to be killed or paused: before its processes end, and after `find` stopped
   * answering it as running.
   */
  closed(target: { readonly sandboxId: string; readonly executionId: string }): void;
  /** What is open at the moment. */
  stats(): EdgeStats;
  /** Accepts nothing more, lets requests in flight end within `graceMs`, and cuts the rest. */
  stop(graceMs?: number): Promise<void>;
};

const sweepIntervalMs = 250;

/** Starts the edge: takes every request on one port and sends it to the API or into a sandbox. */
export function startEdge(options: EdgeOptions): Edge {
  const { taking, ways } = partsOf(options);
  const { context, table } = taking;
  // A failure below must leave no port open.
  using started = new DisposableStack();
  const listening = (listener: Listener) => started.adopt(listener, opened => opened.stop(true));
  const { tls } = options;
  const plain = listening(listenPlain(taking, options, tls?.http2 ?? true));
  const secure = tls === undefined ? null : listening(listenTls(taking, tls, tls.certificate, tls.http2 ?? true));
  started.adopt(
    setInterval(() => sweepOnce(context, table, ways), sweepIntervalMs),
    clearInterval,
  );
  const running = started.move();
  return {
    port: plain.port,
    tlsPort: secure?.port ?? null,
    closed({ sandboxId, executionId }) {
      const traffic = ways.traffic.get(sandboxId);
      if (traffic?.executionId !== executionId) return;
      ways.traffic.delete(sandboxId);
      traffic.cut();
    },
    stats: () => statsOf(table, ways),
    async stop(graceMs = 5000) {
      plain.stop(false);
      secure?.stop(false);
      await endClients(context, graceMs);
      for (const traffic of ways.traffic.values()) traffic.cut();
      ways.apiPool.cut();
      running.dispose();
    },
  };
}

function partsOf(options: EdgeOptions): { taking: Taking; ways: ApiWay & SandboxWay } {
  const { log } = options;
  const { descriptorsMax = Number.POSITIVE_INFINITY, farEnds } = options;
  const within = limitsWithin(descriptorsMax, farEnds ? 'carried' : 'direct', options.memoryBytesMax);
  const limits = { ...within, ...options.limits };
  const trustForwardedHeaders = options.trustForwardedHeaders ?? false;
  const clock = { nowMs: performance.now() };
  const turns = new Http2Turns();
  const context: ConnectionContext = {
    limits,
    log,
    trustForwardedHeaders,
    clock,
    requestHead: new RequestHead(limits.headerLinesMax),
    responseHead: new ResponseHead(limits.headerLinesMax),
    scratch: Buffer.allocUnsafe(2 * (limits.requestHeadBytesMax + limits.responseHeadBytesMax)),
    turns,
    largeHeads: new LargeHeads(limits),
    waiting: new WaitingBytes(limits.waitingBytesMax),
    clients: new Set(),
    stopping: false,
  };
  const ways: ApiWay & SandboxWay = {
    limits,
    log,
    clock,
    directory: options.directory,
    dial: options.dial,
    farEnds,
    apiSocketPath: options.apiSocketPath,
    apiPool: new UpstreamPool(poolBounds(limits, true, new Share('everybody', limits.idleUpstreamsPerPortMax, null))),
    upstreamHandlers: upstreamHandlers(log),
    traffic: new Map(),
    teams: new Teams(limits),
    protocols: new KnownProtocols(),
    turns,
  };
  return { taking: { context, table: new ClientTable(limits, trustForwardedHeaders), serve: serveBy(ways) }, ways };
}

function statsOf(
  table: ClientTable,
  { limits, teams, apiPool, traffic }: Pick<ApiWay & SandboxWay, 'limits' | 'teams' | 'apiPool' | 'traffic'>,
): EdgeStats {
  let upstreamConnections = apiPool.size;
  for (const { connections } of traffic.values()) upstreamConnections += connections;
  return {
    clientConnections: table.size,
    clientConnectionsMax: limits.clientConnectionsMax,
    evictedClients: table.evicted,
    refusedClients: table.refused,
    inSandboxes: teams.inFlight,
    upstreamConnections,
  };
}

function sweepOnce(
  { clock, clients }: Pick<ConnectionContext, 'clock' | 'clients'>,
  table: ClientTable,
  { apiPool, traffic }: Pick<ApiWay & SandboxWay, 'apiPool' | 'traffic'>,
): void {
  const nowMs = performance.now();
  clock.nowMs = nowMs;
  for (const client of clients) if (client.deadlineMs < nowMs) client.expired();
  table.closeIdle(nowMs);
  apiPool.closeIdle(nowMs);
  for (const [sandboxId, own] of traffic) {
    own.sweep(nowMs);
    if (own.quiet) traffic.delete(sandboxId);
  }
}

/** Lets requests in flight end within `graceMs`, and cuts the rest. */
async function endClients(context: Pick<ConnectionContext, 'clients' | 'stopping'>, graceMs: number): Promise<void> {
  context.stopping = true;
  const endMs = performance.now() + graceMs;
  for (const client of [...context.clients]) client.retire();
  while (context.clients.size > 0 && performance.now() < endMs) await Bun.sleep(20);
  for (const client of [...context.clients]) client.terminate();
}
