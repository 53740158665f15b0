import { closeSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import type { Ways } from '../context.ts';
import type { SandboxTraffic } from '../upstream/sandbox-traffic.ts';
import { Upstream } from '../upstream/upstream.ts';
import { Wait } from './wait.ts';

/** What is connected: a descriptor that is connected already, or a unix socket. */
type Endpoint = { readonly fd: number } | { readonly unix: string };

/**
 * A new connection to `port` of a sandbox. A port on which nothing listens is tried again for about a second: clients
 * start a server and use it at once. Errors: those of `dial`; `canceled` when `signal` aborts or the sandbox is cut.
 */
export async function reachSandbox(
  ways: Pick<Ways, 'dial' | 'farEnds' | 'limits' | 'upstreamHandlers'>,
  traffic: SandboxTraffic,
  port: number,
  tls: boolean,
  signal: AbortSignal,
): Promise<Upstream> {
  using wait = new Wait([signal, traffic.signal]);
  const fd = await dialPatiently(ways, traffic.sandboxId, port, wait);
  return await open(ways, new Upstream(traffic.poolOf(port), ways.farEnds?.take(fd)), { fd }, tls, wait);
}

/** The same without TLS, to a server that may speak first. */
export async function reachPort(
  ways: Pick<Ways, 'dial' | 'farEnds' | 'limits' | 'upstreamHandlers'>,
  traffic: SandboxTraffic,
  port: number,
  signal: AbortSignal,
): Promise<Upstream> {
  using wait = new Wait([signal, traffic.signal]);
  const fd = await dialPatiently(ways, traffic.sandboxId, port, wait);
  const upstream = new Upstream(traffic.poolOf(port), ways.farEnds?.take(fd));
  upstream.early = [];
  return await open(ways, upstream, { fd }, false, wait);
}

/** A new connection to the API. */
export async function reachApi(
  ways: Pick<Ways, 'apiPool' | 'apiSocketPath' | 'limits' | 'upstreamHandlers'>,
  signal: AbortSignal,
): Promise<Upstream> {
  using wait = new Wait([signal]);
  try {
    return await open(ways, new Upstream(ways.apiPool), { unix: ways.apiSocketPath }, false, wait);
  } catch (cause) {
    if (cause instanceof AtollError) throw cause;
    throw new AtollError('unavailable', 'The API does not answer; try again in a moment', { cause });
  }
}

async function dialPatiently(
  { dial, limits }: Pick<Ways, 'dial' | 'limits'>,
  sandboxId: string,
  port: number,
  wait: Wait,
): Promise<number> {
  const { dialBackoffMs, dialTimeoutMs } = limits;
  for (let attempt = 0; ; attempt++) {
    try {
      const dialing = dial(sandboxId, port, wait.signal);
      return await wait.for(dialing, dialTimeoutMs, closeSync);
    } catch (error) {
      const pauseMs = dialBackoffMs[attempt];
      if (pauseMs === undefined || !(error instanceof AtollError) || error.code !== 'unavailable') throw error;
      await wait.sleep(pauseMs);
    }
  }
}

async function open(
  { limits, upstreamHandlers }: Pick<Ways, 'limits' | 'upstreamHandlers'>,
  upstream: Upstream,
  endpoint: Endpoint,
  tls: boolean,
  wait: Wait,
): Promise<Upstream> {
  const opening = tls
    ? openTls(upstreamHandlers, endpoint, upstream)
    : connect(endpoint, { ...common(upstream), socket: upstreamHandlers });
  await wait.for(opening, limits.handshakeTimeoutMs, () => upstream.terminate());
  if (upstream.closed)
    throw new AtollError('invalid', 'The service does not speak HTTP: it closed the connection or spoke first');
  upstream.home.add(upstream);
  // Small messages must not wait for the acknowledgement of earlier ones.
  if ('fd' in endpoint) upstream.socket.setNoDelay(true);
  return upstream;
}

/** TLS to a service of the sandbox. Its certificate proves nothing to us: whoever answers there is the sandbox. */
function openTls(upstreamHandlers: Ways['upstreamHandlers'], endpoint: Endpoint, upstream: Upstream): Promise<void> {
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
