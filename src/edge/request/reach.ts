import { closeSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import type { Ways } from '../context.ts';
import type { SandboxTraffic } from '../upstream/sandbox-traffic.ts';
import { Http2Link } from '../upstream/http2/link.ts';
import { Upstream, type UpstreamHome } from '../upstream/upstream.ts';
import { Wait } from './wait.ts';

/** What is connected: a descriptor that is connected already, or a unix socket. */
/** The protocol that a server is asked to speak within TLS (RFC 7301). */
type Protocol = 'http/1.1' | 'h2';

type Endpoint = { readonly fd: number } | { readonly unix: string };

/**
 * A new connection to `port` of a sandbox. A port on which nothing listens is tried again for about a second: clients
 * start a server and use it at once. Errors: those of `dial`; `canceled` when `signal` aborts or the sandbox is cut.
 */
export async function reachSandbox(
  ways: Pick<Ways, 'dial' | 'farEnds' | 'limits' | 'upstreamHandlers'>,
  traffic: SandboxTraffic,
  port: number,
  { tls, isHttp2 }: { tls: boolean; isHttp2: boolean },
  signal: AbortSignal,
): Promise<Upstream> {
  using wait = new Wait([signal, traffic.signal]);
  const fd = await dialPatiently(ways, traffic.sandboxId, port, wait);
  const farEnd = ways.farEnds?.take(fd);
  const pool = traffic.poolOf(port, isHttp2);
  if (!isHttp2) return await open(ways, new Upstream(pool, { farEnd }), { fd }, tls, wait);
  const raw = new Upstream(linked, { farEnd });
  // Such a server may speak first.
  raw.early = [];
  const { upstream } = new Http2Link(await open(ways, raw, { fd }, tls, wait, 'h2'), pool, ways.limits, tls);
  pool.add(upstream);
  return upstream;
}

/** Of a connection under one that is in a pool. */
const linked: UpstreamHome = { add() {}, give() {}, forget() {} };

/** The same without TLS, to a server that may speak first. */
export async function reachPort(
  ways: Pick<Ways, 'dial' | 'farEnds' | 'limits' | 'upstreamHandlers'>,
  traffic: SandboxTraffic,
  port: number,
  signal: AbortSignal,
): Promise<Upstream> {
  using wait = new Wait([signal, traffic.signal]);
  const fd = await dialPatiently(ways, traffic.sandboxId, port, wait);
  const upstream = new Upstream(traffic.poolOf(port), { farEnd: ways.farEnds?.take(fd) });
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
  protocol: Protocol = 'http/1.1',
): Promise<Upstream> {
  const opening = tls
    ? openTls(upstreamHandlers, endpoint, upstream, protocol)
    : connect(endpoint, { ...common(upstream), socket: upstreamHandlers });
  await wait.for(opening, limits.handshakeTimeoutMs, () => upstream.terminate());
  if (upstream.closed)
    throw new AtollError('invalid', 'The service does not speak HTTP: it closed the connection or spoke first');
  upstream.home.add(upstream);
  return upstream;
}

/** The one protocol that is offered, behind its length (RFC 7301). */
const onlyHttp2 = Buffer.from('\x02h2', 'latin1');
const notHttp2 = 'The service does not speak HTTP/2 within TLS, as calls of gRPC do';

/** TLS to a service of the sandbox. Its certificate proves nothing to us: whoever answers there is the sandbox. */
function openTls(
  upstreamHandlers: Ways['upstreamHandlers'],
  endpoint: Endpoint,
  upstream: Upstream,
  protocol: Protocol,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const failed = (cause?: unknown) => reject(new AtollError('invalid', 'The service does not speak TLS', { cause }));
  const socket: Bun.SocketHandler<Upstream> = {
    ...upstreamHandlers,
    // Its own verdict also counts the certificate. A cipher is agreed on only where both sides speak TLS.
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
  const offered = protocol === 'h2' ? { ALPNProtocols: onlyHttp2 } : {};
  connect(endpoint, { ...common(upstream), socket, tls: { rejectUnauthorized: false, ...offered } }).catch(failed);
  return promise;
}

function common(upstream: Upstream): { data: Upstream; allowHalfOpen: true } {
  return { data: upstream, allowHalfOpen: true };
}

type Options = { data: Upstream; allowHalfOpen: true; socket: Bun.SocketHandler<Upstream>; tls?: Bun.TLSOptions };

async function connect(endpoint: Endpoint, options: Options): Promise<void> {
  // The runtime takes a connected descriptor where the types know only an address.
  const socket = await Bun.connect({ ...endpoint, ...options } as Bun.UnixSocketOptions<Upstream>);
  // Small messages must not wait for the acknowledgement of earlier ones.
  if ('fd' in endpoint) socket.setNoDelay(true);
}
