import { once } from 'node:events';
import { createServer, connect, type NetConnectOpts, type Socket } from 'node:net';

/** What is wrong with a line. */
type Trouble = {
  /** Delays each piece that goes through by this long. */
  latencyMs?: number;
  bytesPerSecond?: number;
  /** Resets connections once this many bytes have gone to the server. */
  resetAfterBytes?: number;
  /** Nothing goes through, and nobody is told. */
  isDead?: boolean;
};

/** A line to a server, which can be as bad as lines are. */
export type Proxy = AsyncDisposable & {
  port: number;
  /** Applies from now on, also to existing connections. */
  trouble(trouble: Trouble): void;
  /** Resets every connection. */
  cut(): void;
};

/** Starts one on an address of this machine. */
export async function startProxy(target: NetConnectOpts, hostname = '127.0.0.1'): Promise<Proxy> {
  let present: Trouble = {};
  const sockets = new Set<Socket>();
  const kept = (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    return socket;
  };
  const carry = async (from: Socket, to: Socket, isUpwards: boolean) => {
    let sent = 0;
    for await (const piece of from as AsyncIterable<Buffer>) {
      while (present.isDead && !from.destroyed) await Bun.sleep(50);
      const { latencyMs = 0, bytesPerSecond, resetAfterBytes } = present;
      const waitMs = latencyMs + (bytesPerSecond === undefined ? 0 : (piece.length / bytesPerSecond) * 1000);
      if (waitMs > 0) await Bun.sleep(waitMs);
      sent += piece.length;
      if (isUpwards && resetAfterBytes !== undefined && sent > resetAfterBytes) {
        from.resetAndDestroy();
        to.destroy();
        return;
      }
      if (!to.write(piece)) await drained(to);
    }
    to.end();
  };
  const server = createServer(client => {
    const upstream = kept(connect(target));
    kept(client);
    const ended = () => {
      client.destroy();
      upstream.destroy();
    };
    void carry(client, upstream, true).catch(ended);
    void carry(upstream, client, false).catch(ended);
  });
  server.listen(0, hostname);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a proxy has no port');
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    port: address.port,
    trouble: trouble => void (present = trouble),
    cut,
    async [Symbol.asyncDispose]() {
      cut();
      server.close();
    },
  };
}

async function drained(socket: Socket): Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  await Promise.race([once(socket, 'drain', { signal }), once(socket, 'close', { signal })]).catch(() => {});
  over.abort();
}
