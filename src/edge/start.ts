import { messageOf } from '../base/error.ts';
import type { Log } from '../base/log.ts';
import { ClientTable } from './client-table.ts';
import type { EdgeStats } from '../protocol/directory.ts';
import type { EdgeContext } from './context.ts';
import type { Dial, SandboxDirectory } from './directory.ts';
import { RequestHead } from './http/request-head.ts';
import { ResponseHead } from './http/response-head.ts';
import { type EdgeLimits, limitsWithin, poolBounds } from './limits.ts';
import { listenPlain, listenTls, type Listener } from './listeners.ts';
import { Share } from '../base/share.ts';
import { Teams } from './team-traffic.ts';
import { type CertificateFiles, certificateFromFiles, type CertificateSource } from './tls/certificate-files.ts';
import { localAuthority } from './tls/local-authority.ts';
import { upstreamHandlers } from './upstream.ts';
import { UpstreamPool } from './upstream-pool.ts';

export type EdgeOptions = {
  readonly hostname: string;
  /** 0: any free port. */
  readonly port: number;
  /** Where the API listens. */
  readonly apiSocketPath: string;
  readonly directory: SandboxDirectory;
  readonly dial: Dial;
  readonly log: Log;
  /** Believe the `X-Forwarded-*` of clients: only where nobody but a load balancer can reach the port. Default false. */
  readonly trustForwardedHeaders?: boolean;
  /** A second port that speaks TLS. */
  readonly tls?: TlsOptions;
  /** How many files the edge may hold open: the default limits are made smaller where they would need more. Default: no bound. */
  readonly descriptorsMax?: number;
  /** Bounds that differ from those. */
  readonly limits?: Partial<EdgeLimits>;
};

export type TlsOptions = {
  readonly hostname: string;
  /** 0: any free port. */
  readonly port: number;
  readonly certificate: TlsCertificate;
  /** Offer HTTP/2 besides HTTP/1.1. Default true. */
  readonly http2?: boolean;
  /** How often changes of the certificate are looked for. */
  readonly checkIntervalMs?: number;
};

export type TlsCertificate =
  /** PEM files; read again when they change. */
  | ({ readonly kind: 'files' } & CertificateFiles)
  /** Held by somebody else, who has the right to read it and exchanges it. */
  | { readonly kind: 'given'; readonly source: CertificateSource }
  /** An authority in `folder`, made on first use, that signs for `names` (DNS names, `*.suffix`, addresses). */
  | { readonly kind: 'local'; readonly folder: string; readonly names: readonly string[] };

/** The one port of the platform. */
export type Edge = {
  readonly port: number;
  /** Null without TLS. */
  readonly tlsPort: number | null;
  /** The certificate (PEM) of the local authority: who trusts this file trusts the TLS port. Null without one. */
  readonly authorityFile: string | null;
  /**
   * Cuts every connection into one execution of a sandbox, with a reset, so that no stream looks as if it had ended. To be
   * called as soon as it is to be killed or paused: before its processes end, and after `find` stopped answering it as
   * running.
   */
  closed(target: { readonly sandboxId: string; readonly executionId: string }): void;
  /** What is open at the moment. */
  stats(): EdgeStats;
  /** Accepts nothing more, lets requests in flight end within `graceMs`, and cuts the rest. */
  stop(graceMs?: number): Promise<void>;
};

const sweepIntervalMs = 250;
/** How soon a changed certificate is noticed. */
const certificateCheckMs = 5_000;

/** Starts the edge: takes every request on one port and sends it to the API or into a sandbox. */
export function startEdge(options: EdgeOptions): Edge {
  const context = contextOf(options);
  // Whatever fails below must leave no port open.
  using started = new DisposableStack();
  const listening = (listener: Listener) => started.adopt(listener, opened => opened.stop(true));
  const every = (intervalMs: number, work: () => void) => started.adopt(setInterval(work, intervalMs), clearInterval);
  const plain = listening(listenPlain(context, options));
  const secure = options.tls === undefined ? null : openSecure(context, options.tls, listening, every);
  every(sweepIntervalMs, () => sweepOnce(context));
  const running = started.move();
  return {
    port: plain.port,
    tlsPort: secure?.listener.port ?? null,
    authorityFile: secure?.authorityFile ?? null,
    closed({ sandboxId, executionId }) {
      const traffic = context.traffic.get(sandboxId);
      if (traffic?.executionId !== executionId) return;
      context.traffic.delete(sandboxId);
      traffic.cut();
    },
    stats: () => statsOf(context),
    async stop(graceMs = 5000) {
      plain.stop(false);
      secure?.listener.stop(false);
      await drain(context, graceMs);
      running.dispose();
    },
  };
}

function openSecure(
  context: EdgeContext,
  tls: TlsOptions,
  listening: (listener: Listener) => Listener,
  every: (intervalMs: number, work: () => void) => unknown,
): { listener: Listener; authorityFile: string | null } {
  const { source, authorityFile } = openCertificate(tls.certificate, context.log);
  const listener = listening(listenTls(context, tls, source, tls.http2 ?? true));
  every(tls.checkIntervalMs ?? certificateCheckMs, () => refresh(source, context.log));
  return { listener, authorityFile };
}

function refresh(source: CertificateSource, log: Log): void {
  try {
    source.refresh();
  } catch (error) {
    log.warn('the certificate can\'t be looked at, the earlier one stays', { error: messageOf(error) });
  }
}

function openCertificate(options: TlsCertificate, log: Log): { source: CertificateSource; authorityFile: string | null } {
  if (options.kind === 'given') return { source: options.source, authorityFile: null };
  if (options.kind === 'files') return { source: certificateFromFiles(options, log), authorityFile: null };
  const source = localAuthority(options.folder, options.names);
  return { source, authorityFile: source.authorityFile };
}

function contextOf(options: EdgeOptions): EdgeContext {
  const limits = { ...limitsWithin(options.descriptorsMax ?? Number.POSITIVE_INFINITY), ...options.limits };
  const trustForwardedHeaders = options.trustForwardedHeaders ?? false;
  return {
    limits,
    directory: options.directory,
    dial: options.dial,
    log: options.log,
    apiSocketPath: options.apiSocketPath,
    trustForwardedHeaders,
    clock: { nowMs: performance.now() },
    requestHead: new RequestHead(limits.headerLinesMax),
    responseHead: new ResponseHead(limits.headerLinesMax),
    scratch: Buffer.allocUnsafe(2 * (limits.requestHeadBytesMax + limits.responseHeadBytesMax)),
    apiPool: new UpstreamPool(poolBounds(limits, true, new Share('everybody', limits.idleUpstreamsPerPortMax, null))),
    upstreamHandlers: upstreamHandlers(options.log),
    traffic: new Map(),
    teams: new Teams(limits),
    clients: new Set(),
    table: new ClientTable(limits, trustForwardedHeaders),
    stopping: false,
  };
}

function statsOf(context: EdgeContext): EdgeStats {
  const { table, teams } = context;
  let upstreamConnections = context.apiPool.size;
  for (const traffic of context.traffic.values()) upstreamConnections += traffic.connections;
  return {
    clientConnections: table.size,
    evictedClients: table.evicted,
    refusedClients: table.refused,
    inSandboxes: teams.inFlight,
    upstreamConnections,
  };
}

function sweepOnce(context: EdgeContext): void {
  const nowMs = performance.now();
  context.clock.nowMs = nowMs;
  for (const client of context.clients) if (client.deadlineMs < nowMs) client.expired();
  context.table.closeIdle(nowMs);
  context.apiPool.closeIdle(nowMs);
  for (const [sandboxId, traffic] of context.traffic) {
    traffic.sweep(nowMs);
    if (traffic.quiet) context.traffic.delete(sandboxId);
  }
}

async function drain(context: EdgeContext, graceMs: number): Promise<void> {
  context.stopping = true;
  const endMs = performance.now() + graceMs;
  for (const client of [...context.clients]) client.retire();
  while (context.clients.size > 0 && performance.now() < endMs) await Bun.sleep(20);
  for (const client of [...context.clients]) client.terminate();
  for (const traffic of context.traffic.values()) traffic.cut();
  context.apiPool.cut();
}
