import { AtollError, messageOf } from '../../../../base/error.ts';
import { parseAddress, protectedRange, splitHostPort, type EgressProxy } from '../../../../protocol/network/network.ts';
import { SocketChannel, channelHandlers } from './channel.ts';
import type { Resolver } from './dns/resolver.ts';
import { askSocks } from './socks.ts';
import type { Account, Target } from './target.ts';

/** How long a server may take to accept a connection. */
const connectTimeoutMs = 10_000;
/** Addresses of one name that are tried. */
const addressesMax = 4;

/** How a connection is made, and where it may lead. */
type DialOptions = {
  resolver: Resolver;
  account: Account;
  /** Connections leave from it: the packet rules keep it away from everything protected. */
  localAddress: string;
  egressProxy: EgressProxy | undefined;
  /** Whether an address that was looked up may be connected to, protected ranges aside. */
  mayReach(octets: Uint8Array): boolean;
  signal: AbortSignal;
};

/** A connection, and the address on its other side; undefined where a SOCKS5 server has looked the name up. */
export type Dialled = { channel: SocketChannel; address: string | undefined };

/**
 * Connects to the target, through the SOCKS5 server where there is one. Errors: `forbidden`, `not_found`,
 * `unavailable`.
 */
export async function dial(target: Target, options: DialOptions): Promise<Dialled> {
  const { egressProxy } = options;
  if (!egressProxy) return connectAny(target, options);
  const { host, port } = splitHostPort(egressProxy.address);
  if (port === undefined) throw new AtollError('invalid', "the SOCKS5 server's address has no port");
  const { channel } = await connectAny({ host, port }, { ...options, mayReach: () => true }).catch((error: unknown) => {
    options.signal.throwIfAborted();
    // The policy's doing: whoever named a server that is not there finds it in the log, as the create looks nothing up.
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
 * Connects to exactly this address, from `localAddress` where it is given. Errors: `forbidden` where the account has no
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
      connectError() {}, // the promise says it
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
    // One that comes up after all belongs to nobody.
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
