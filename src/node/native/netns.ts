import { closeSync, openSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import { innerAddress } from '../layout.ts';
import { errno, errnoOf, libc } from './libc.ts';

const CLONE_NEWNET = 0x40000000;
const SOCK_STREAM_NONBLOCK_CLOEXEC = 1 | 0o4000 | 0o2000000;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_NETLINK = 16;
const POLLOUT = 4;
const POLLERR_OR_HUP = 0x18;

/**
 * The loopback of either family, or the address of the namespace's own link. If the sandbox's network is not the
 * kernel's: from outside, or through the relay that connects inside.
 */
export type Target = 'ipv4' | 'ipv6' | 'own' | 'outside' | 'relay';

/** A socket that is connecting, and how to ask for its progress. */
export type Connecting = { fd: number; progress(): 'pending' | 'connected' | 'refused' };

/** A network namespace in which sockets can be made without a process inside. */
export type NetworkNamespace = {
  /** The ways in, in the order in which they are tried. */
  targets: readonly [Target, ...Target[]];
  /**
   * Makes a non-blocking socket that is connecting to `port` inside the namespace, and says how to ask for its
   * progress. The socket belongs to the namespace for good, so nothing needs a route, an address or a rule to reach
   * it.
   */
  connect(target: Target, port: number): Connecting;
  /** Makes a netlink socket of the given protocol for the namespace, with the platform's own privileges. */
  netlinkSocket(protocol: number): number;
  closeSocket(fd: number): void;
  close(): void;
};

const own = openSync('/proc/self/ns/net', 'r');

/** The network namespace of the process `pid`. It lives until closed, even if its processes have ended. */
export function openNetworkNamespace(pid: number): NetworkNamespace {
  const namespace = openSync(`/proc/${pid}/ns/net`, 'r');
  return {
    targets: ['ipv4', 'ipv6', 'own'],
    connect(target, port) {
      if (target !== 'ipv6') return connect4(namespace, target === 'own' ? innerAddress : '127.0.0.1', port);
      const fd = socketIn(namespace, AF_INET6);
      const address = loopback6(port);
      const refused = libc.connect(fd, address, address.length) < 0 && errno() !== errnoOf.EINPROGRESS;
      return { fd, progress: () => (refused ? 'refused' : progressOf(fd)) };
    },
    netlinkSocket: protocol => netlinkIn(namespace, protocol),
    closeSocket: fd => void libc.close(fd),
    close: () => closeSync(namespace),
  };
}

/**
 * Makes a socket in a namespace. Only this thread changes its namespace, and it is back before anything else can run
 * on it.
 */
function socketIn(namespace: number, family: number, type = SOCK_STREAM_NONBLOCK_CLOEXEC, protocol = 0): number {
  if (libc.setns(namespace, CLONE_NEWNET) < 0)
    throw new AtollError('internal', `can't enter the sandbox's network: errno ${errno()}`);
  const fd = libc.socket(family, type, protocol);
  const error = errno();
  if (libc.setns(own, CLONE_NEWNET) < 0) process.abort(); // never go on in a stranger's network
  if (fd < 0) throw new AtollError('unavailable', `can't make a socket: errno ${error}`);
  return fd;
}

function address4(address: string, port: number): Uint8Array {
  const bytes = new Uint8Array(16);
  bytes.set([AF_INET, 0, port >> 8, port & 255]);
  bytes.set(address.split('.').map(Number), 4);
  return bytes;
}

function loopback6(port: number): Uint8Array {
  const address = new Uint8Array(28);
  address.set([AF_INET6, 0, port >> 8, port & 255]);
  address[23] = 1; // ::1
  return address;
}

/** Makes a netlink socket for a namespace. */
export function netlinkIn(namespace: number, protocol: number): number {
  return socketIn(namespace, AF_NETLINK, SOCK_RAW_CLOEXEC, protocol);
}

/** Begins a connection to an IPv4 address by a non-blocking socket of the namespace. */
export function connect4(namespace: number, address: string, port: number): Connecting {
  const fd = socketIn(namespace, AF_INET);
  const target = address4(address, port);
  const refused = libc.connect(fd, target, target.length) < 0 && errno() !== errnoOf.EINPROGRESS;
  return { fd, progress: () => (refused ? 'refused' : progressOf(fd)) };
}

function progressOf(fd: number): 'pending' | 'connected' | 'refused' {
  const request = new Uint8Array(8);
  const view = new DataView(request.buffer);
  view.setInt32(0, fd, true);
  view.setInt16(4, POLLOUT, true);
  if (libc.poll(request, 1, 0) <= 0) return 'pending';
  return view.getInt16(6, true) & POLLERR_OR_HUP ? 'refused' : 'connected';
}
