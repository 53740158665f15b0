import { controlRoleOf } from '../../base/crypto/cluster-names.ts';
import type { CertificatePair } from '../../base/crypto/certificate.ts';
import { callBytesMax } from '../frame.ts';
import { CallBudget, serve, type Served } from '../serve.ts';
import { WaitingBytes } from '../stream-channel.ts';
import { Backlog } from './backlog.ts';
import { TlsChannel } from './tls-channel.ts';

/** How a node proves who it is, and whom it believes. */
export type NodeIdentity = CertificatePair & { /** PEM of the cluster's authority. */ authority: string };

/** Connections that are open at a time: a few of each process of each replica. */
const tlsConnectionsMax = 256;
/** Longest time for a stranger to prove who he is, milliseconds. */
const handshakeTimeoutMs = 10_000;

type Peer = { channel?: TlsChannel; timer: Timer };

/**
 * Serves methods to processes of control over TLS 1.3, each by its certificate: one that the cluster's authority has
 * not signed for a client with a name of control's is cut off before a byte of it is read. `backlog`: what all of them
 * together send to sandboxes that do not take it.
 */
export function listenTls(
  { hostname, port, identity }: { hostname: string; port: number; identity: NodeIdentity },
  served: Served,
  backlog = new Backlog(),
): { port: number; exchange(identity: NodeIdentity): void; stop(): void } {
  const peers = new Set<Bun.Socket<Peer>>();
  const socket = handlersFor(served, peers, backlog);
  const listen = (at: number, { certificate, key, authority }: NodeIdentity) =>
    Bun.listen<Peer>({
      hostname,
      port: at,
      tls: { cert: certificate, key, ca: authority, requestCert: true, rejectUnauthorized: true } as Bun.TLSOptions,
      socket,
    });
  let listener = listen(port, identity);
  let current = identity;
  const bound = listener.port;
  return {
    port: bound,
    exchange(next) {
      // Open connections stay: they were let in by certificates that still hold.
      listener.stop(false);
      try {
        listener = listen(bound, next);
        current = next;
      } catch (error) {
        listener = listen(bound, current);
        throw error;
      }
    },
    stop() {
      listener.stop(true);
      for (const peer of [...peers]) peer.terminate();
    },
  };
}

/** Lets in who proves to be control, and serves each by its channel. `peers`: all that are open. */
function handlersFor(served: Served, peers: Set<Bun.Socket<Peer>>, backlog: Backlog): Bun.SocketHandler<Peer> {
  const { log } = served;
  const budgets = { api: new CallBudget(), edge: new CallBudget() };
  const waiting = { api: new WaitingBytes(), edge: new WaitingBytes() };
  return {
    open(socket) {
      socket.data = { timer: setTimeout(() => socket.terminate(), handshakeTimeoutMs) };
      peers.add(socket);
      if (peers.size > tlsConnectionsMax) {
        log.warn('too many connections to the port of this node', { tlsConnectionsMax });
        socket.terminate();
      }
    },
    handshake(socket) {
      clearTimeout(socket.data.timer);
      // What the callback itself is told counts a wrong certificate as a success in some versions of the runtime.
      const { authorized } = socket as unknown as { authorized: boolean };
      const role = authorized ? controlRoleOf(socket.getPeerCertificate()?.subjectaltname) : undefined;
      if (!role) {
        log.warn('a stranger connected to the port of this node', { address: socket.remoteAddress });
        return void socket.terminate();
      }
      socket.setNoDelay(true);
      const options = { backlog, messageBytesMax: callBytesMax[role], waiting: waiting[role] };
      const channel = new TlsChannel(socket, options);
      socket.data.channel = channel;
      serve(channel, role, served, budgets[role]);
    },
    data(socket, bytes) {
      if (socket.data.channel) socket.data.channel.received(bytes);
      else socket.terminate();
    },
    drain: socket => socket.data?.channel?.drained(),
    close(socket) {
      peers.delete(socket);
      clearTimeout(socket.data?.timer);
      socket.data?.channel?.closed();
    },
    error(socket, error) {
      log.error('a connection of control failed', { error: error.stack });
      socket.terminate();
    },
  };
}
