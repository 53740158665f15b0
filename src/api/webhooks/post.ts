import { connect, isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AtollError, messageOf } from '../../base/error.ts';
import { hostOf } from '../app/webhook-url.ts';

/** Of the head of an answer, interim ones included. */
const headBytesMax = 16_384;
/** Of its body, which is read for politeness: who is still sending hears a reset otherwise. */
const bodyBytesMax = 65_536;
const bodyWaitMs = 1_000;

/**
 * Sends one POST over a connection of its own to `address`, whatever the URL's name would resolve to, and answers the status.
 * Nothing of the answer is kept and no redirect followed. Written out by hand, because no client takes the address apart from
 * the name that the certificate must have. Throws `unavailable`, and what `signal` was aborted with.
 */
export async function post(url: URL, address: string, request: { headers: Record<string, string>; body: string }, signal: AbortSignal): Promise<number> {
  signal.throwIfAborted();
  const socket = open(url, address);
  const status = Promise.withResolvers<number>();
  const onAbort = () => socket.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  signal.addEventListener('abort', onAbort, { once: true });
  const head = new HeadReader();
  socket.on('data', (chunk: Buffer) => {
    try {
      const found = head.read(chunk);
      if (found !== undefined) status.resolve(found);
      if (head.isEnough) socket.destroy();
    } catch (error) {
      status.reject(error);
      socket.destroy();
    }
  });
  socket.on('error', error => status.reject(new AtollError('unavailable', `The receiver can't be reached: ${messageOf(error)}`, { cause: error })));
  socket.on('close', () => status.reject(new AtollError('unavailable', 'The receiver closed the connection without an answer')));
  socket.on(url.protocol === 'https:' ? 'secureConnect' : 'connect', () => socket.write(textOf(url, request)));
  try {
    const answered = await status.promise;
    setTimeout(() => socket.destroy(), bodyWaitMs).unref();
    return answered;
  } catch (error) {
    socket.destroy();
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function open(url: URL, address: string): Socket {
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  if (url.protocol === 'http:') return connect({ host: address, port });
  const name = hostOf(url);
  return connectTls({ host: address, port, ALPNProtocols: ['http/1.1'], ...(!isIP(name) && { servername: name }) });
}

function textOf(url: URL, { headers, body }: { headers: Record<string, string>; body: string }): string {
  const all = { Host: url.host, ...headers, 'Content-Length': String(Buffer.byteLength(body)), Connection: 'close' };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

/** Finds the status in what a receiver sends. */
class HeadReader {
  #text = '';
  #found = false;
  #bodyBytes = 0;

  /** True once as much of the body came as is taken. */
  get isEnough(): boolean {
    return this.#bodyBytes > bodyBytesMax;
  }

  /** The status, once the head is complete. Throws `unavailable` where it is too long or none. */
  read(chunk: Buffer): number | undefined {
    if (this.#found) {
      this.#bodyBytes += chunk.length;
      return undefined;
    }
    this.#text += chunk.toString('latin1');
    for (;;) {
      const end = this.#text.indexOf('\r\n\r\n');
      if (end > headBytesMax || (end < 0 && this.#text.length > headBytesMax)) throw new AtollError('unavailable', `The head of the receiver's answer is longer than ${headBytesMax} bytes`);
      if (end < 0) return undefined;
      const [, digits] = /^HTTP\/1\.[01] (\d{3})(?: |\r\n)/.exec(this.#text) ?? [];
      if (digits === undefined) throw new AtollError('unavailable', 'The receiver does not answer in HTTP/1.1');
      this.#text = this.#text.slice(end + 4);
      // RFC 9110, 15.2: interim answers come before the one that counts.
      if (Number(digits) >= 200) {
        this.#found = true;
        return Number(digits);
      }
    }
  }
}
