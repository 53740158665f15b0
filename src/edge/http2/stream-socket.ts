import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Field } from '../../http1/head-bytes.ts';
import type { ResponseHead } from '../../http1/response-head.ts';
import { type ResponseLimits, ResponseReader } from '../../http1/response-reader.ts';
import { bodyEndBytes } from '../../http1/trailers.ts';
import { trailersOf } from '../http2-fields.ts';
import type { ByteSocket } from '../send-buffer.ts';
import type { BodyBytes } from './body-bytes.ts';
import type { RequestBytes } from './request-bytes.ts';
import { http2Headers, http2Trailers } from './response-headers.ts';

/** Receives the bytes of a socket. */
export type SocketUser = {
  received(bytes: Buffer): void;
  drained(): void;
  halfClosed(): void;
  wasClosed(error: Error | undefined): void;
};

/** The connection that carries a stream. */
type Carrier = {
  readonly remoteAddress: string;
  /** The body bytes that it has sent. */
  readonly carried: BodyBytes;
  /** The client takes no more at the moment: writers must wait for `drained`. */
  readonly isFull: boolean;
};

const pieceBytes = 65_536;
const crlf = Buffer.from('\r\n');

/**
 * A stream of an HTTP/2 connection, in the form of a client socket that carries one HTTP/1.1 request. HTTP/2 so obeys
 * every rule that HTTP/1.1 does, because there is only one set of rules. A reset is a reset of the stream.
 */
export class StreamSocket implements ByteSocket {
  bytesWritten = 0;
  readonly #carrier: Carrier;
  readonly #stream: ServerHttp2Stream;
  readonly #response: ResponseReader;
  readonly #body: RequestBytes['body'];
  readonly #takesTrailers: boolean;
  #user: SocketUser | null = null;
  #taken = 0;
  /** The request's trailers so far; undefined: a field came that may not be there. */
  #trailers: readonly Field[] | undefined = [];
  #responseTrailers: readonly Field[] = [];
  #closed = false;

  constructor(
    stream: ServerHttp2Stream,
    carrier: Carrier,
    request: RequestBytes,
    toHead: boolean,
    limits: ResponseLimits,
  ) {
    this.#carrier = carrier;
    this.#stream = stream;
    this.#body = request.body;
    this.#takesTrailers = request.takesTrailers;
    this.#response = new ResponseReader(
      {
        interim: head => this.#attempt(() => stream.additionalHeaders(http2Headers(head))),
        head: (head, hasBody) => this.#attempt(() => this.#respond(head, hasBody)),
        // The bytes belong to the edge and change after the call.
        data: bytes => void stream.write(Buffer.from(bytes)),
        trailers: fields => void (this.#responseTrailers = fields),
        end: () => this.#endResponse(),
      },
      limits,
      toHead ? 'head' : request.body.kind === 'tunnel' ? 'upgrade' : 'content',
    );
  }

  get remoteAddress(): string {
    return this.#carrier.remoteAddress;
  }

  get bytesCarried(): number {
    return this.#carrier.carried.total;
  }

  /** Bytes of either direction that this stream holds. */
  get heldBytes(): number {
    return this.#stream.readableLength + this.#stream.writableLength;
  }

  /** Begins to pass the request on. */
  serve(user: SocketUser, head: Buffer): void {
    const stream = this.#stream;
    this.#user = user;
    stream.on('error', () => {
      // A close event follows.
    });
    stream.on('drain', () => user.drained());
    if (this.#body.kind !== 'none') {
      stream.on('data', (bytes: Buffer) => this.#takeBody(bytes));
      stream.on('trailers', trailers => void (this.#trailers = trailersOf(trailers)));
      stream.on('end', () => this.#endBody());
    }
    user.received(head);
  }

  write(bytes: Uint8Array, start = 0, length = bytes.length - start): number {
    if (this.#closed) return -1;
    let taken = 0;
    // In pieces, so that no stream holds more than its buffer plus one piece: the runtime would accept any number of
    // bytes for a connection that nobody reads.
    while (taken < length && !this.#stream.writableNeedDrain && !this.#carrier.isFull) {
      const size = Math.min(pieceBytes, length - taken);
      const fault = this.#response.read(Buffer.from(bytes.buffer, bytes.byteOffset + start + taken, size));
      if (fault !== undefined) {
        this.terminate();
        return -1;
      }
      taken += size;
    }
    this.bytesWritten += taken;
    return taken;
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  shutdown(): void {
    // A response without all the bytes it promised is none.
    if (!this.#response.close()) this.terminate();
  }

  close(): void {
    this.shutdown();
  }

  terminate(): void {
    if (this.#closed) return;
    // With an error: closing with a code, whichever it is, would first end the body in order.
    this.#stream.destroy(new Error('reset'));
    this.#end(undefined);
  }

  /** The whole response was handed on. */
  get isAnswered(): boolean {
    return this.#response.over;
  }

  /** The connection takes bytes again. */
  drained(): void {
    this.#user?.drained();
  }

  /** The stream is closed, and its bytes are with the kernel. */
  wasClosed(): void {
    this.#end(this.#response.over ? undefined : new Error('the stream was reset'));
  }

  /** The connection of the stream is gone. */
  lost(error: Error | undefined): void {
    this.#end(error ?? new Error('the connection was closed'));
  }

  #takeBody(bytes: Buffer): void {
    const body = this.#body;
    this.#taken += bytes.length;
    if (body.kind === 'chunked') {
      if (bytes.length === 0) return;
      this.#user?.received(Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, crlf]));
    } else if (body.kind === 'tunnel' || (body.kind === 'length' && this.#taken <= body.length)) {
      this.#user?.received(bytes);
    } else {
      // Bytes beyond the announced length would be read as another request.
      this.terminate();
    }
  }

  #endBody(): void {
    if (this.#trailers === undefined) this.terminate();
    else if (this.#body.kind === 'chunked') this.#user?.received(bodyEndBytes(this.#trailers));
    else if (this.#body.kind === 'tunnel') this.#user?.halfClosed();
    else if (this.#body.kind === 'length' && this.#taken < this.#body.length) this.terminate();
  }

  #respond(head: ResponseHead, hasBody: boolean): void {
    const stream = this.#stream;
    const waitForTrailers = hasBody && this.#takesTrailers;
    if (waitForTrailers)
      stream.once('wantTrailers', () =>
        this.#attempt(() => stream.sendTrailers(http2Trailers(this.#responseTrailers))),
      );
    stream.respond(http2Headers(head), { endStream: !hasBody, waitForTrailers });
  }

  #endResponse(): void {
    const stream = this.#stream;
    if (!stream.writableEnded) stream.end();
    // Nobody needs the rest of the request: the client may stop sending it (RFC 9113 8.1).
    if (!stream.readableEnded && this.#body.kind !== 'none')
      stream.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR));
  }

  /** Runs `send`, which throws for headers that HTTP/2 can't carry; such a response counts as none. */
  #attempt(send: () => void): void {
    try {
      if (!this.#closed) send();
    } catch {
      this.terminate(); // the client sees a reset stream, as an HTTP/1.1 client sees a closed connection
    }
  }

  #end(error: Error | undefined): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#user?.wasClosed(error);
  }
}
