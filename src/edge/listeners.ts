import type { CertificatePair } from '../base/crypto/certificate.ts';
import type { Log } from '../base/telemetry/log.ts';
import { ClientConnection, type Serve } from './connection/client-connection.ts';
import type { ClientTable } from './clients/client-table.ts';
import type { ConnectionContext } from './context.ts';
import { Http2Connection } from './http2/connection.ts';
import { Greeting, isPreface } from './http2/greeting.ts';
import type { SocketUser } from './http2/stream-socket.ts';

/** A certificate with its key, which may be replaced at any time. */
export type CurrentCertificate = { readonly current: CertificatePair };
/** Where to listen. Port 0: any free port. */
type Address = { readonly hostname: string; readonly port: number };
/** An open port. `stop` closes it; `stop(true)` also closes its connections. */
export type Listener = { readonly port: number; stop(closeConnections: boolean): void };

/** What handles new connections. */
export type Taking = {
  readonly context: ConnectionContext;
  /** Every connection of clients. */
  readonly table: ClientTable;
  readonly serve: Serve;
};

/** Finds clients that vanished without closing. */
const keepAliveProbeMs = 60_000;
/** The protocols offered in TLS, each preceded by its length (RFC 7301). */
const http11 = '\x08http/1.1';
const http2AndHttp11 = `\x02h2${http11}`;

/**
 * Accepts cleartext connections. With `http2`, a connection whose first bytes are HTTP/2's speaks it, without
 * negotiation (RFC 9113 3.3).
 */
export function listenPlain(taking: Taking, { hostname, port }: Address, http2: boolean): Listener {
  const socket = handlers(taking, false);
  const greeted = http2 ? { ...socket, data: greet(taking) } : socket;
  return Bun.listen<SocketUser>({ hostname, port, allowHalfOpen: true, socket: greeted });
}

/** Looks at the first bytes of each connection. */
function greet({ context, serve }: Taking): (socket: Bun.Socket<SocketUser>, bytes: Buffer) => void {
  return (socket, bytes) => {
    const user = socket.data;
    if (!(user instanceof ClientConnection) || !user.isFresh) return user?.received(bytes);
    const become = (all: Buffer, isHttp2: boolean) => {
      const { seat } = user;
      socket.data = user;
      if (isHttp2 && seat !== null) {
        context.clients.delete(user);
        socket.data = new Http2Connection(context, socket, false, seat, serve);
      }
      socket.data.received(all);
    };
    const verdict = isPreface(bytes);
    if (verdict === undefined) socket.data = new Greeting(user, bytes, become);
    else become(bytes, verdict);
  };
}

/**
 * Accepts TLS connections, each with the certificate that is current when it arrives. Connections are accepted in the
 * clear and then upgraded to TLS, so that a new certificate needs no new listener.
 */
export function listenTls(
  taking: Taking,
  { hostname, port }: Address,
  certificates: CurrentCertificate,
  http2: boolean,
): Listener {
  const secured = handlers(taking, true);
  const protocols = Buffer.from(http2 ? http2AndHttp11 : http11, 'latin1');
  return Bun.listen({
    hostname,
    port,
    allowHalfOpen: true,
    socket: {
      open(raw) {
        const { certificate, key } = certificates.current;
        const options: ServerUpgrade = {
          tls: { cert: certificate, key, ALPNProtocols: protocols },
          isServer: true,
          allowHalfOpen: true,
          socket: secured,
        };
        raw.upgradeTLS<SocketUser>(options);
      },
      // The socket needs one data handler; without `data`, encrypted bytes are not copied for nothing.
      drain() {},
      error: failed(taking.context.log),
    },
  });
}

/** The runtime can also be the server side of TLS; its types leave that out. */
type ServerUpgrade = Bun.TLSUpgradeOptions<SocketUser> & { readonly isServer: true; readonly allowHalfOpen: true };

function handlers({ context, table, serve }: Taking, secure: boolean): Bun.SocketHandler<SocketUser> {
  return {
    open(socket) {
      // There is no address if the client has already reset the connection; the types leave that out.
      const address = socket.remoteAddress as string | undefined;
      const seat = address === undefined ? null : table.admit(address, context.clock.nowMs);
      if (seat === null) return void socket.terminate();
      socket.setKeepAlive(true, keepAliveProbeMs);
      const client = new ClientConnection(context, socket, secure, serve, seat.origin, seat);
      seat.owner = client;
      socket.data = client;
      context.clients.add(client);
    },
    handshake(socket) {
      if (socket.alpnProtocol !== 'h2' || !(socket.data instanceof ClientConnection)) return;
      // Nothing has come yet: the connection can still become an HTTP/2 one.
      context.clients.delete(socket.data);
      const { seat } = socket.data;
      if (seat !== null) socket.data = new Http2Connection(context, socket, secure, seat, serve);
    },
    data: (socket, bytes) => socket.data?.received(bytes),
    drain: socket => socket.data?.drained(),
    end: socket => socket.data?.halfClosed(),
    close: (socket, error) => socket.data?.wasClosed(error),
    error: failed(context.log),
  };
}

/** Connection errors arrive with the close event; errors that arrive here were thrown by a handler. */
function failed(log: Log): (socket: { terminate(): void }, error: Error) => void {
  return (socket, error) => {
    log.error('client handler failed', { error: error.stack });
    socket.terminate();
  };
}
