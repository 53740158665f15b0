import { closeSync } from 'node:fs';
import { AtollError } from '../base/error.ts';
import type { EdgeContext } from './context.ts';
import type { SandboxTraffic } from './sandbox-traffic.ts';
import { Upstream } from './upstream.ts';
import type { UpstreamPool } from './upstream-pool.ts';
import { Wait } from './wait.ts';

/** What is connected: a descriptor that is connected already, or a unix socket. */
type Endpoint = { readonly fd: number } | { readonly unix: string };

/**
 * A new connection to `port` of a sandbox. A port on which nothing listens is tried again for about a second: clients
 * start a server and use it at once. Errors: those of `dial`; `canceled` when `signal` aborts or the sandbox is cut.
 */
export async function reachSandbox(
  context: EdgeContext,
  traffic: SandboxTraffic,
  port: number,
  tls: boolean,
  signal: AbortSignal,
): Promise<Upstream> {
  using wait = new Wait([signal, traffic.signal]);
  const fd = await dialPatiently(context, traffic.sandboxId, port, wait);
  return await open(context, traffic.poolOf(port), { fd }, tls, wait);
}

/** A new connection to the API. */
export async function reachApi(context: EdgeContext, signal: AbortSignal): Promise<Upstream> {
  using wait = new Wait([signal]);
  try {
    return await open(context, context.apiPool, { unix: context.apiSocketPath }, false, wait);
  } catch (cause) {
    if (cause instanceof AtollError) throw cause;
    throw new AtollError('unavailable', 'The API does not answer; try again in a moment', { cause });
  }
}

async function dialPatiently(context: EdgeContext, sandboxId: string, port: number, wait: Wait): Promise<number> {
  const { dialBackoffMs, dialTimeoutMs } = context.limits;
  for (let attempt = 0; ; attempt++) {
    try {
      const dialing = context.dial(sandboxId, port, wait.signal);
      return await wait.for(dialing, dialTimeoutMs, closeSync);
    } catch (error) {
      const pauseMs = dialBackoffMs[attempt];
      if (pauseMs === undefined || !(error instanceof AtollError) || error.code !== 'unavailable') throw error;
      await wait.sleep(pauseMs);
    }
  }
}

async function open(
  context: EdgeContext,
  pool: UpstreamPool,
  endpoint: Endpoint,
  tls: boolean,
  wait: Wait,
): Promise<Upstream> {
  const upstream = new Upstream(pool);
  const opening = tls ? openTls(context, endpoint, upstream) : connect(endpoint, { ...common(upstream), socket: context.upstreamHandlers });
  await wait.for(opening, context.limits.handshakeTimeoutMs, () => upstream.terminate());
  if (upstream.closed) throw new AtollError('invalid', 'The service does not speak HTTP: it closed the connection or spoke first');
  pool.add(upstream);
  // Small messages must not wait for the acknowledgement of earlier ones.
  if ('fd' in endpoint) upstream.socket.setNoDelay(true);
  return upstream;
}

/** TLS to a service of the sandbox. Its certificate proves nothing to us: whoever answers there is the sandbox. */
function openTls({ upstreamHandlers }: EdgeContext, endpoint: Endpoint, upstream: Upstream): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const failed = (cause?: unknown) => reject(new AtollError('invalid', 'The service does not speak TLS', { cause }));
  const socket: Bun.SocketHandler<Upstream> = {
    ...upstreamHandlers,
    // Its own verdict also counts the certificate. A cipher is agreed on only where both sides speak TLS.
    handshake: secured => (secured.getCipher().name ? resolve() : failed()),
    close(closed, error) {
      upstreamHandlers.close(closed, error);
      failed(error);
    },
  };
  connect(endpoint, { ...common(upstream), socket, tls: { rejectUnauthorized: false } }).catch(failed);
  return promise;
}

function common(upstream: Upstream): { data: Upstream; allowHalfOpen: true } {
  return { data: upstream, allowHalfOpen: true };
}

type Options = { data: Upstream; allowHalfOpen: true; socket: Bun.SocketHandler<Upstream>; tls?: Bun.TLSOptions };

async function connect(endpoint: Endpoint, options: Options): Promise<void> {
  // The runtime takes a connected descriptor where the types know only an address.
  await Bun.connect({ ...endpoint, ...options } as Bun.UnixSocketOptions<Upstream>);
}
