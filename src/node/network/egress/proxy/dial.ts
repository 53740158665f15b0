import { AtollError, messageOf } from '../../../../base/error.ts';
import { parseAddress, protectedRange, splitHostPort, type EgressProxy } from '../../../../protocol/network/network.ts';
import { SocketChannel, channelHandlers } from './channel.ts';
import type { Resolver } from './dns/resolver.ts';
import { askSocks } from './socks.ts';
import type { Account, Target } from './target.ts';

/** How long a server may take to accept a connection. */
const connectTimeoutMs = 10_000;
/** How many addresses of one name are tried. */
const addressesMax = 4;

/** How a connection is made, and where it may lead. */
type DialOptions = {
  resolver: Resolver;
  account: Account;
  /** Connections leave from this address: the packet rules keep it away from everything protected. */
  localAddress: string;
  egressProxy: EgressProxy | undefined;
  /** Whether a connection to a looked-up address is allowed, apart from protected ranges. */
  mayReach(octets: Uint8Array): boolean;
  signal: AbortSignal;
};

/** A connection, and the address of its peer; undefined if a SOCKS5 server has looked up the name. */
export type Dialled = { channel: SocketChannel; address: string | undefined };

/**
 * Connects to the target, through the SOCKS5 server if there is one. Errors: `forbidden`, `not_found`, `unavailable`.
 */
export async function dial(target: Target, options: DialOptions): Promise<Dialled> {
  const { egressProxy } = options;
  if (!egressProxy) return connectAny(target, options);
  const { host, port } = splitHostPort(egressProxy.address);
  if (port === undefined) throw new AtollError('invalid', "the SOCKS5 server's address has no port");
  const { channel } = await connectAny({ host, port }, { ...options, mayReach: () => true }).catch((error: unknown) => {
    options.signal.throwIfAborted();
    // The policy is the cause: if it names a server that does not exist, the log says so, because the create looks
    // nothing up.
    throw new AtollError('forbidden', `egressProxy: ${messageOf(error)}`, { cause: error });
  });
  try {
    await askSocks(channel, target, egressProxy);
    return { channel, address: parseAddress(target.host) ? target.host : undefined };
  } catch (error) {
    channel.abort();
    throw error;
  }
}

async function connectAny({ host, port }: Target, options: DialOptions): Promise<Dialled> {
  const known = parseAddress(host) ? [host] : await options.resolver.resolve(host, options.account);
  const addresses = known.filter(address => {
    const octets = parseAddress(address);
    return octets !== undefined && protectedRange(octets) === undefined && options.mayReach(octets);
  });
  if (addresses.length === 0)
    throw new AtollError('forbidden', `${host} is at ${known.join(', ')}, which the policy does not allow`);
  let failure: unknown;
  for (const address of addresses.slice(0, addressesMax)) {
    try {
      return { channel: await connect(address, port, options), address };
    } catch (error) {
      options.signal.throwIfAborted();
      failure = error;
    }
  }
  throw new AtollError('unavailable', `${host} port ${port} can't be reached`, { cause: failure });
}

type ConnectOptions = { localAddress?: string; signal: AbortSignal; account: Account };

/**
 * Connects to exactly this address, from `localAddress` if it is given. Errors: `forbidden` if the account has no
 * descriptor left, `deadline_exceeded`.
 */
export async function connect(
  address: string,
  port: number,
  { localAddress, signal, account }: ConnectOptions,
): Promise<SocketChannel> {
  signal.throwIfAborted();
  const release = account.take();
  if (!release) throw new AtollError('forbidden', 'the sandbox has as many connections as it may');
  const connecting = Bun.connect<SocketChannel>({
    hostname: address,
    port,
    ...(localAddress !== undefined && { localAddress }),
    allowHalfOpen: true,
    socket: {
      ...channelHandlers,
      open(socket) {
        socket.data = new SocketChannel(socket, account.share);
        socket.data.whenGone = release;
        socket.setNoDelay(true);
      },
      connectError() {}, // the promise reports it
    },
  } as Bun.TCPSocketConnectOptions<SocketChannel>);
  connecting.catch(release);
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new AtollError('deadline_exceeded', `${address} does not accept connections`)),
    connectTimeoutMs,
  );
  const onAbort = () => late.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const socket = await Promise.race([connecting, late.promise]);
    return socket.data;
  } catch (error) {
    // A connection that still comes up belongs to nobody.
    void connecting.then(
      socket => socket.terminate(),
      () => {},
    );
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
