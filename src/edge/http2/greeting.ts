import type { SocketUser } from './stream-socket.ts';

/** What a client sends first if it already knows that the server speaks HTTP/2 (RFC 9113 3.4). */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Whether the first bytes of a connection are the HTTP/2 preface, are not, or may still become it. */
export function isPreface(bytes: Buffer): boolean | undefined {
  const length = Math.min(bytes.length, preface.length);
  if (preface.compare(bytes, 0, length, 0, length) !== 0) return false;
  return length === preface.length ? true : undefined;
}

/**
 * Holds the first bytes of a cleartext connection while they may still become the HTTP/2 preface, at most as many bytes
 * as the preface has; everything else goes to its user.
 */
export class Greeting implements SocketUser {
  readonly #user: SocketUser;
  readonly #decided: (bytes: Buffer, isHttp2: boolean) => void;
  #bytes: Buffer;

  /** `decided` takes all bytes that came, and replaces this. */
  constructor(user: SocketUser, bytes: Buffer, decided: (bytes: Buffer, isHttp2: boolean) => void) {
    this.#user = user;
    this.#decided = decided;
    this.#bytes = Buffer.from(bytes);
  }

  received(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    const verdict = isPreface(this.#bytes);
    if (verdict !== undefined) this.#decided(this.#bytes, verdict);
  }

  drained(): void {
    this.#user.drained();
  }

  halfClosed(): void {
    // Nothing more comes: what has come decides.
    this.#decided(this.#bytes, false);
    this.#user.halfClosed();
  }

  wasClosed(error: Error | undefined): void {
    this.#user.wasClosed(error);
  }
}
