import { ClientConnection } from './client-connection.ts';
import type { EdgeContext } from './context.ts';
import { serve } from './serve.ts';
import type { CertificateSource } from './tls/certificate-files.ts';

export type Address = { readonly hostname: string; readonly port: number };
export type Listener = { readonly port: number; stop(closeConnections: boolean): void };

/** Finds clients that vanished without a word. */
const keepAliveProbeMs = 60_000;
const alpnHttp11 = Buffer.from('\x08http/1.1', 'latin1');

/** Takes connections in the clear. */
export function listenPlain(context: EdgeContext, { hostname, port }: Address): Listener {
  return Bun.listen<ClientConnection>({ hostname, port, allowHalfOpen: true, socket: handlers(context, false) });
}

/**
 * Takes connections over TLS, each with the certificate that is current when it arrives. TLS is put on connections that
 * were taken in the clear, so that a new certificate needs no new listener.
 */
export function listenTls(context: EdgeContext, { hostname, port }: Address, certificates: CertificateSource): Listener {
  const secured = handlers(context, true);
  return Bun.listen({
    hostname,
    port,
    allowHalfOpen: true,
    socket: {
      open(raw) {
        const { certificate, key } = certificates.current;
        const options: ServerUpgrade = {
          tls: { cert: certificate, key, ALPNProtocols: alpnHttp11 },
          isServer: true,
          allowHalfOpen: true,
          socket: secured,
        };
        raw.upgradeTLS<ClientConnection>(options);
      },
      // One handler for data is needed, and without `data` the encrypted bytes are not copied for nobody.
      drain() {},
    },
  });
}

/** The runtime can also be the server's side of TLS, which its types leave out. */
type ServerUpgrade = Bun.TLSUpgradeOptions<ClientConnection> & { readonly isServer: true; readonly allowHalfOpen: true };

function handlers(context: EdgeContext, secure: boolean): Bun.SocketHandler<ClientConnection> {
  return {
    open(socket) {
      if (context.clients.size >= context.limits.clientConnectionsMax) return void socket.terminate();
      socket.setKeepAlive(true, keepAliveProbeMs);
      socket.data = new ClientConnection(context, socket, secure, serve);
      context.clients.add(socket.data);
    },
    data: (socket, bytes) => socket.data?.received(bytes),
    drain: socket => socket.data?.drained(),
    end: socket => socket.data?.halfClosed(),
    close: (socket, error) => socket.data?.wasClosed(error),
    error() {
      // A close event with the error follows.
    },
  };
}
