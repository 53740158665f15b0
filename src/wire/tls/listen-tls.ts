import { controlRoleOf } from '../../base/crypto/cluster-names.ts';
import type { CertificatePair } from '../../base/crypto/certificate.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { callBytesMax } from '../frame.ts';
import { CallBudget, serve, type Served } from '../serve.ts';
import { WaitingBytes } from '../stream-channel.ts';
import { Backlog } from './backlog.ts';
import { TlsChannel } from './tls-channel.ts';

/** How a node proves who it is, and whom it trusts. */
export type NodeIdentity = CertificatePair & { /** PEM of the cluster's authority. */ authority: string };

/** Connections of control open at a time: a few for each process of each replica. */
const tlsConnectionsMax = 256;
/** Connections of peers that have not proved yet who they are; one more ends the one that has waited longest. */
const strangersMax = 128;
/** How often strangers get into the log, milliseconds: whoever reaches the port may come as often as it likes. */
const strangersToldMs = 10_000;
/** Longest time for a stranger to prove its identity, milliseconds. */
const handshakeTimeoutMs = 10_000;

type Peer = { channel?: TlsChannel; timer: Timer };

/**
 * Serves methods to processes of control over TLS 1.3, each identified by its certificate. A peer whose certificate is
 * not signed by the cluster's authority, for a client with a name of control's, is cut off before a byte of it is read.
 * `backlog`: what all of them together send to sandboxes that do not take it.
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
      // Open connections stay: the certificates that let them in are still valid.
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

/** Tells of a stranger, and with the next one how many came in between. */
function strangersIn(log: Log): (address: string) => void {
  let [toldAt, untold] = [-Infinity, 0];
  return address => {
    if (performance.now() - toldAt < strangersToldMs) return void untold++;
    log.warn('a stranger connected to the port of this node', { address, ...(untold > 0 && { others: untold }) });
    [toldAt, untold] = [performance.now(), 0];
  };
}

/** Admits peers that prove to be control, and serves each on its own channel. `peers`: all that are open. */
function handlersFor(served: Served, peers: Set<Bun.Socket<Peer>>, backlog: Backlog): Bun.SocketHandler<Peer> {
  const { log } = served;
  const strangers = new Set<Bun.Socket<Peer>>();
  const tellOfStranger = strangersIn(log);
  const budgets = { api: new CallBudget(), edge: new CallBudget() };
  const waiting = { api: new WaitingBytes(), edge: new WaitingBytes() };
  return {
    open(socket) {
      socket.data = { timer: setTimeout(() => socket.terminate(), handshakeTimeoutMs) };
      peers.add(socket);
      strangers.add(socket);
      // Control proves itself at once: those that wait are others, and must not keep it away.
      const [longest] = strangers;
      if (strangers.size > strangersMax) longest?.terminate();
    },
    handshake(socket) {
      clearTimeout(socket.data.timer);
      strangers.delete(socket);
      // In some versions of the runtime, the callback's own argument reports a wrong certificate as a success.
      const { authorized } = socket as unknown as { authorized: boolean };
      const role = authorized ? controlRoleOf(socket.getPeerCertificate()?.subjectaltname) : undefined;
      if (!role) {
        tellOfStranger(socket.remoteAddress);
        return void socket.terminate();
      }
      if (peers.size - strangers.size > tlsConnectionsMax) {
        log.warn('too many connections to the port of this node', { tlsConnectionsMax });
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
      strangers.delete(socket);
      clearTimeout(socket.data?.timer);
      socket.data?.channel?.closed();
    },
    error(socket, error) {
      log.error('a connection of control failed', { error: error.stack });
      socket.terminate();
    },
  };
}
