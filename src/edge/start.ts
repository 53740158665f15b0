import type { Log } from '../base/log.ts';
import { ClientConnection } from './client-connection.ts';
import type { EdgeContext } from './context.ts';
import type { Dial, SandboxDirectory } from './directory.ts';
import { RequestHead } from './http/request-head.ts';
import { ResponseHead } from './http/response-head.ts';
import { defaultLimits, type EdgeLimits } from './limits.ts';
import { serve } from './serve.ts';
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
  /** Bounds that differ from `defaultLimits`. */
  readonly limits?: Partial<EdgeLimits>;
};

/** The one port of the platform. */
export type Edge = {
  readonly port: number;
  /**
   * Cuts every connection into one execution of a sandbox, with a reset, so that no stream looks as if it had ended. To be
   * called as soon as it is to be killed or paused: before its processes end, and after `find` stopped answering it as
   * running.
   */
  closed(target: { readonly sandboxId: string; readonly executionId: string }): void;
  /** Accepts nothing more, lets requests in flight end within `graceMs`, and cuts the rest. */
  stop(graceMs?: number): Promise<void>;
};

const sweepIntervalMs = 250;
const keepAliveProbeMs = 60_000;

/** Starts the edge: takes every request on one port and sends it to the API or into a sandbox. */
export function startEdge(options: EdgeOptions): Edge {
  const context = contextOf(options);
  const listener = listen(context, options);
  const sweep = setInterval(() => sweepOnce(context), sweepIntervalMs);
  sweep.unref();
  return {
    port: listener.port,
    closed({ sandboxId, executionId }) {
      const traffic = context.traffic.get(sandboxId);
      if (traffic?.executionId !== executionId) return;
      context.traffic.delete(sandboxId);
      traffic.cut();
    },
    async stop(graceMs = 5000) {
      listener.stop(false);
      await drain(context, graceMs);
      clearInterval(sweep);
    },
  };
}

function contextOf(options: EdgeOptions): EdgeContext {
  const limits = { ...defaultLimits, ...options.limits };
  return {
    limits,
    directory: options.directory,
    dial: options.dial,
    log: options.log,
    apiSocketPath: options.apiSocketPath,
    trustForwardedHeaders: options.trustForwardedHeaders ?? false,
    clock: { nowMs: performance.now() },
    requestHead: new RequestHead(limits.headerLinesMax),
    responseHead: new ResponseHead(limits.headerLinesMax),
    scratch: Buffer.allocUnsafe(2 * (limits.requestHeadBytesMax + limits.responseHeadBytesMax)),
    apiPool: new UpstreamPool({ idleMax: limits.idleUpstreamsPerPortMax, idleTimeoutMs: limits.idleOwnUpstreamTimeoutMs }),
    traffic: new Map(),
    clients: new Set(),
    stopping: false,
  };
}

function listen(context: EdgeContext, { hostname, port }: EdgeOptions): Bun.TCPSocketListener<ClientConnection> {
  return Bun.listen<ClientConnection>({
    hostname,
    port,
    allowHalfOpen: true,
    socket: {
      open(socket) {
        if (context.clients.size >= context.limits.clientConnectionsMax) return void socket.terminate();
        // Finds clients that vanished without a word.
        socket.setKeepAlive(true, keepAliveProbeMs);
        socket.data = new ClientConnection(context, socket, false, serve);
        context.clients.add(socket.data);
      },
      data: (socket, bytes) => socket.data?.received(bytes),
      drain: socket => socket.data?.drained(),
      end: socket => socket.data?.halfClosed(),
      close: (socket, error) => socket.data?.wasClosed(error),
      error() {
        // A close event with the error follows.
      },
    },
  });
}

function sweepOnce(context: EdgeContext): void {
  const nowMs = performance.now();
  context.clock.nowMs = nowMs;
  for (const client of context.clients) if (client.deadlineMs < nowMs) client.expired();
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
