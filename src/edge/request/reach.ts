import { closeSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import type { ApiWay, SandboxWay } from '../context.ts';
import type { Protocol } from '../upstream/known-protocols.ts';
import type { SandboxTraffic } from '../upstream/sandbox-traffic.ts';
import { Http2Link } from '../upstream/http2/link.ts';
import { Upstream, type UpstreamHome } from '../upstream/upstream.ts';
import { Wait } from './wait.ts';

/** Where to connect: a descriptor that is already connected, or a unix socket. */
type Endpoint = { readonly fd: number } | { readonly unix: string };

type Reach = Pick<SandboxWay, 'dial' | 'farEnds' | 'limits' | 'turns' | 'upstreamHandlers'>;

/** How to ask a service. */
type Asking = {
  readonly tls: boolean;
  /** Undefined: HTTP/1.1, or HTTP/2 if the service shows that it speaks nothing else. */
  readonly protocol: Protocol | undefined;
  /** The request can't be sent twice, so the edge waits a moment for what the service says first. */
  readonly hasBody: boolean;
};

/**
 * A new connection to `port` of a sandbox. If nothing listens on the port, it retries for about a second: clients start
 * a server and use it at once. Errors: those of `dial`; `canceled` when `signal` aborts or the sandbox is cut.
 */
export async function reachSandbox(
  way: Reach,
  traffic: SandboxTraffic,
  port: number,
  { tls, protocol, hasBody }: Asking,
  signal: AbortSignal,
): Promise<Upstream> {
  using wait = new Wait([signal, traffic.signal]);
  const dialled = async () => {
    const fd = await dialPatiently(way, traffic.sandboxId, port, wait);
    return { fd, farEnd: way.farEnds?.take(fd) };
  };
  const inHttp2 = async () => {
    const { fd, farEnd } = await dialled();
    const raw = new Upstream(linked, { farEnd });
    // Such a server may speak first.
    raw.early = [];
    return link(way, traffic, port, tls, await open(way, raw, { fd }, tls, wait, 'h2'));
  };
  if (protocol === 'h2') return await inHttp2();
  const { fd, farEnd } = await dialled();
  const upstream = new Upstream(traffic.poolOf(port), { farEnd });
  const mayGreet = protocol === undefined && hasBody && !tls;
  if (mayGreet) upstream.early = [];
  try {
    await open(way, upstream, { fd }, tls, wait);
  } catch (error) {
    const isRefused = error instanceof AtollError && error.code === 'invalid';
    if (protocol !== undefined || !isRefused || !(tls || upstream.greetedInHttp2)) throw error;
    // The service may have refused only HTTP/1.1. If not, the first error is the one to report.
    const secondTry = await inHttp2().catch(() => Promise.reject(error));
    traffic.heard(port, 'h2');
    return secondTry;
  }
  if (!mayGreet || !(await hasGreeted(upstream, wait))) return upstream;
  traffic.heard(port, 'h2');
  return await inHttp2();
}

/** How long a service that may speak only HTTP/2 has to say so, ms, before a request that can't be sent twice. */
const greetingMs = 25;

/**
 * Waits until the service has spoken or the time is over; answers whether it speaks HTTP/2, and if so gives up the
 * connection. Errors: `invalid` if it says something else; `canceled`.
 */
async function hasGreeted(upstream: Upstream, wait: Wait): Promise<boolean> {
  const { promise: spoken, resolve } = Promise.withResolvers<void>();
  upstream.onEarly = resolve;
  try {
    if (upstream.early?.length === 0) await Promise.race([spoken, wait.sleep(greetingMs)]);
    // An event loop that was held up has read nothing meanwhile: it gets one more turn.
    if (upstream.early?.length === 0 && !upstream.closed) await Promise.race([spoken, wait.sleep(0)]);
  } catch (error) {
    upstream.terminate();
    throw error;
  }
  const isSilent = upstream.early?.length === 0 && !upstream.closed;
  upstream.onEarly = null;
  upstream.early = null;
  if (isSilent) return false;
  upstream.terminate();
  if (!upstream.greetedInHttp2) throw new AtollError('invalid', spokeFirst);
  return true;
}

/** Speaks HTTP/2 over a connection on which nothing was sent yet. */
function link(
  way: Pick<SandboxWay, 'limits' | 'turns'>,
  traffic: SandboxTraffic,
  port: number,
  tls: boolean,
  raw: Upstream,
) {
  const pool = traffic.poolOf(port, true);
  const { upstream } = new Http2Link(raw, pool, way, tls);
  pool.add(upstream);
  return upstream;
}

/** The home of a connection that carries a pooled one. */
const linked: UpstreamHome = { add() {}, give() {}, forget() {} };

/** The same without TLS, to a server that may speak first. */
export async function reachPort(
  way: Reach,
  traffic: SandboxTraffic,
  port: number,
  signal: AbortSignal,
): Promise<Upstream> {
  using wait = new Wait([signal, traffic.signal]);
  const fd = await dialPatiently(way, traffic.sandboxId, port, wait);
  const upstream = new Upstream(traffic.poolOf(port), { farEnd: way.farEnds?.take(fd) });
  upstream.early = [];
  return await open(way, upstream, { fd }, false, wait);
}

/** A new connection to the API. */
export async function reachApi(
  way: Pick<ApiWay, 'apiPool' | 'apiSocketPath' | 'limits' | 'upstreamHandlers'>,
  signal: AbortSignal,
): Promise<Upstream> {
  using wait = new Wait([signal]);
  try {
    return await open(way, new Upstream(way.apiPool), { unix: way.apiSocketPath }, false, wait);
  } catch (cause) {
    if (cause instanceof AtollError) throw cause;
    throw new AtollError('unavailable', 'The API does not answer; try again in a moment', { cause });
  }
}

async function dialPatiently(
  { dial, limits }: Pick<SandboxWay, 'dial' | 'limits'>,
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
  { limits, upstreamHandlers }: Pick<SandboxWay, 'limits' | 'upstreamHandlers'>,
  upstream: Upstream,
  endpoint: Endpoint,
  tls: boolean,
  wait: Wait,
  protocol: Protocol = 'http/1.1',
): Promise<Upstream> {
  const opening = tls
    ? openTls(upstreamHandlers, endpoint, upstream, protocol)
    : connect(endpoint, { ...common(upstream), socket: upstreamHandlers });
  try {
    await wait.for(opening, limits.handshakeTimeoutMs, () => {});
  } catch (error) {
    // It may stay open for long, waiting for a handshake that never ends, and no pool knows of it yet.
    upstream.abandon();
    throw error;
  }
  if (upstream.closed) throw new AtollError('invalid', spokeFirst);
  upstream.home.add(upstream);
  return upstream;
}

const spokeFirst = 'The service does not speak HTTP: it closed the connection or spoke first';
/** The one protocol that is offered, preceded by its length (RFC 7301). */
const offers = { 'http/1.1': Buffer.from('\x08http/1.1', 'latin1'), h2: Buffer.from('\x02h2', 'latin1') };
const notHttp2 = 'The service does not speak HTTP/2 within TLS, as calls of gRPC do';

/** TLS to a service of the sandbox. Its certificate proves nothing to us: whoever answers there is the sandbox. */
function openTls(
  upstreamHandlers: SandboxWay['upstreamHandlers'],
  endpoint: Endpoint,
  upstream: Upstream,
  protocol: Protocol,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const failed = (cause?: unknown) => reject(new AtollError('invalid', 'The service does not speak TLS', { cause }));
  const socket: Bun.SocketHandler<Upstream> = {
    ...upstreamHandlers,
    // The runtime's own verdict also judges the certificate. A cipher is agreed on only if both sides speak TLS.
    handshake(secured) {
      if (!secured.getCipher().name) failed();
      else if (protocol === 'h2' && secured.alpnProtocol !== 'h2') reject(new AtollError('invalid', notHttp2));
      else resolve();
    },
    close(closed, error) {
      upstreamHandlers.close(closed, error);
      failed(error);
    },
  };
  const tls = { rejectUnauthorized: false, ALPNProtocols: offers[protocol] };
  connect(endpoint, { ...common(upstream), socket, tls }).catch(failed);
  return promise;
}

function common(upstream: Upstream): { data: Upstream; allowHalfOpen: true } {
  return { data: upstream, allowHalfOpen: true };
}

type Options = { data: Upstream; allowHalfOpen: true; socket: Bun.SocketHandler<Upstream>; tls?: Bun.TLSOptions };

async function connect(endpoint: Endpoint, options: Options): Promise<void> {
  // The runtime accepts a connected descriptor; its types know only an address.
  const socket = await Bun.connect({ ...endpoint, ...options } as Bun.UnixSocketOptions<Upstream>);
  // Small messages must not wait for acknowledgements of earlier ones.
  if ('fd' in endpoint) socket.setNoDelay(true);
}
