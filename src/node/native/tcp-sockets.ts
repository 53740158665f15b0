import type { NetworkNamespace } from './netns.ts';
import { families, flags, NetlinkError, openNetlink } from './netlink.ts';
import type { Flow } from './conntrack.ts';

// linux/sock_diag.h, inet_diag.h
const SOCK_DIAG_BY_FAMILY = 20;
const SOCK_DESTROY = 21;
const IPPROTO_TCP = 6;
const AF_INET = 2;
const AF_INET6 = 10;
const requestBytes = 56;
/** Offset in both structures of a socket's ends: ports, addresses, interface, cookie. */
const ends = { inRequest: 8, inAnswer: 4, length: 48 } as const;
/** TCP_ESTABLISHED to TCP_LAST_ACK and TCP_CLOSING, as bits; without listening sockets and TCP_TIME_WAIT. */
const connectedStates = 0b1011_0011_1110;
const mappedPrefix = Buffer.from('00000000000000000000ffff', 'hex');
const ENOENT = 2;
const EOPNOTSUPP = 95;

/** A connected TCP socket of a sandbox. */
export type TcpSocket = Flow & {
  /** Identifies the socket to the kernel. */
  request: Buffer;
};

/** The TCP sockets of one network namespace. */
export type TcpSockets = {
  /** Lists them in parts, and other work gets its turn in between: a sandbox may hold very many. */
  list(): AsyncGenerator<TcpSocket[], void>;
  /**
   * Closes a socket with an error at once, so that programs need not wait for a timeout. If the kernel can't do that
   * (CONFIG_INET_DIAG_DESTROY), the next packet ends the connection.
   */
  destroy(socket: TcpSocket): void;
  close(): void;
};

/** The connections of programs in the namespace, of either family; those to mapped addresses count as IPv4. */
export function openTcpSockets(namespace: Pick<NetworkNamespace, 'netlinkSocket'>): TcpSockets {
  const diag = openNetlink(families.sockDiag, namespace.netlinkSocket);
  return {
    async *list() {
      for (const family of [AF_INET, AF_INET6]) {
        const body = Buffer.alloc(requestBytes);
        body.set([family, IPPROTO_TCP]);
        body.writeUInt32LE(connectedStates, 4);
        for await (const answers of diag.dump('listing sockets', { type: SOCK_DIAG_BY_FAMILY, body })) {
          yield answers.flatMap(answer => socketOf(family, answer.body) ?? []);
        }
      }
    },
    destroy({ request }) {
      try {
        diag.exchange('closing a socket', [{ type: SOCK_DESTROY, flags: flags.ack, body: request }]);
      } catch (error) {
        if (!(error instanceof NetlinkError && (error.errno === ENOENT || error.errno === EOPNOTSUPP))) throw error;
      }
    },
    close: () => diag.close(),
  };
}

/** struct inet_diag_msg. */
function socketOf(family: number, body: Buffer): TcpSocket | undefined {
  if (body.length < ends.inAnswer + ends.length) return undefined;
  const identity = body.subarray(ends.inAnswer, ends.inAnswer + ends.length);
  const remote = identity.subarray(20, 36);
  const isMapped = family === AF_INET6 && remote.subarray(0, 12).equals(mappedPrefix);
  const request = Buffer.alloc(requestBytes);
  request.set([family, IPPROTO_TCP]);
  request.writeUInt32LE(0xffffffff, 4);
  request.set(identity, ends.inRequest);
  return {
    protocol: 'tcp',
    sourcePort: identity.readUInt16BE(0),
    port: identity.readUInt16BE(2),
    destination: Uint8Array.from(family === AF_INET ? remote.subarray(0, 4) : isMapped ? remote.subarray(12) : remote),
    request,
  };
}
