import { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { CertificatePair } from '../../../../../base/crypto/certificate.ts';
import { SocketChannel, channelHandlers, type Channel, type ChannelUser } from '../channel.ts';

/** How long the two sides may take to agree on encryption. */
const handshakeTimeoutMs = 10_000;

/**
 * Accepts a TLS connection from a client whose ClientHello is still in the channel, and answers the decrypted channel.
 * It offers only HTTP/1.1. Fails if the client does not trust the proxy.
 */
export function acceptTls(client: Channel, { key, certificate }: CertificatePair): Promise<Channel> {
  const stream = streamOver(client);
  const tls = new TLSSocket(stream, { isServer: true, key, cert: certificate, ALPNProtocols: ['http/1.1'] });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(new Error('the handshake took too long')), handshakeTimeoutMs);
    const fail = (error: Error) => {
      clearTimeout(timer);
      client.abort();
      reject(error);
    };
    const leave = () => fail(new Error('the client broke the handshake off'));
    tls.once('error', fail);
    tls.once('close', leave);
    // Until it is encrypted, the other stream reports no end.
    stream.once('end', leave);
    tls.once('secure', () => {
      clearTimeout(timer);
      tls.removeAllListeners();
      stream.off('end', leave);
      tls.pause();
      resolve(channelOf(tls, stream, client));
    });
  });
}

/** A stream that carries a channel's bytes. */
function streamOver(channel: Channel): Duplex {
  let taken: (() => void) | undefined;
  const stream = new Duplex({
    // With this mark, any waiting byte makes the stream report when none waits any more.
    writableHighWaterMark: 1,
    read: () => channel.resume(),
    write(bytes: Buffer, _, done) {
      if (channel.write(bytes)) done();
      else taken = done;
    },
    final(done) {
      channel.end();
      done();
    },
    destroy(error, done) {
      channel.abort();
      done(error);
    },
  });
  channel.use({
    data(bytes) {
      if (!stream.push(bytes)) channel.pause();
    },
    drained() {
      const done = taken;
      taken = undefined; // the call below may set it again
      done?.();
    },
    ended: () => void stream.push(null),
    closed: () => void stream.destroy(),
  });
  return stream;
}

/**
 * `stream` lies between the two. The runtime encrypts all that it gets, and reports room again, even if the client
 * takes nothing: only the bytes that wait in `stream` tell.
 */
function channelOf(tls: TLSSocket, stream: Duplex, below: Channel): Channel {
  let closed = false;
  let drained = () => {};
  tls.on('error', () => {}); // `close` follows
  for (const side of [tls, stream]) side.on('drain', () => stream.writableLength === 0 && drained());
  return {
    use(user: ChannelUser) {
      for (const event of ['data', 'end', 'close']) tls.removeAllListeners(event);
      drained = () => user.drained();
      tls.on('data', (bytes: Buffer) => user.data(bytes));
      tls.on('end', () => user.ended());
      tls.on('close', () => {
        closed = true;
        user.closed();
      });
      tls.resume();
    },
    write: bytes => closed || bytes.length === 0 || (tls.write(bytes) && stream.writableLength === 0),
    end: () => void tls.end(),
    // This also ends the stream between the two, and the encrypted one with it.
    abort: () => below.abort(),
    pause: () => void tls.pause(),
    resume: () => void tls.resume(),
    get isClosed() {
      return closed;
    },
  };
}

/**
 * Encrypts a connection to a server, and answers the channel once the server has shown a certificate for `name` that
 * one of `roots` (PEM) vouches for. Otherwise fails with the reason.
 */
export function connectTls(below: SocketChannel, name: string, roots: string): Promise<Channel> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail('the handshake took too long'), handshakeTimeoutMs);
    let secured = false;
    const fail = (reason: string) => {
      clearTimeout(timer);
      below.socket.terminate();
      reject(new Error(reason));
    };
    below.isHandedOver = true;
    const [, socket] = below.socket.upgradeTLS<SocketChannel>({
      tls: { serverName: name, ca: roots, rejectUnauthorized: true, ALPNProtocols: offered },
      socket: {
        ...channelHandlers,
        open() {},
        handshake(_, authorized, error) {
          if (!authorized) return fail(error?.message ?? 'no certificate that can be trusted');
          clearTimeout(timer);
          secured = true;
          resolve(channel);
        },
        close(socket) {
          if (secured) return socket.data.onClose();
          fail('the server broke the handshake off');
          below.whenGone?.();
        },
      },
    });
    const channel = new SocketChannel(socket, below.share);
    channel.whenGone = below.whenGone;
    socket.data = channel;
  });
}

/** RFC 7301: each name with its length before it. */
const offered = Buffer.from('\x08http/1.1', 'latin1');
