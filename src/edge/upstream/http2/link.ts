import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { Duplex } from 'node:stream';
import { BodyReader } from '../../../http1/body-reader.ts';
import type { Field } from '../../../http1/head-bytes.ts';
import { RequestHead } from '../../../http1/request-head.ts';
import { bodyEndBytes, Trailers } from '../../../http1/trailers.ts';
import { trailersOf } from '../../http2-fields.ts';
import { Http2Input, type Http2Turns } from '../../http2-turns.ts';
import type { EdgeLimits } from '../../limits.ts';
import type { ByteSocket } from '../../send-buffer.ts';
import { Upstream, type UpstreamHome, type UpstreamUser } from '../upstream.ts';
import { headersOf, trailersFor } from './request.ts';
import { chunkBytes, responseHeadBytes } from './response.ts';

/** What a service may send ahead of its client, the default of HTTP/2: bounds what the edge holds for it. */
const windowBytes = 65_535;
/** What the runtime may hold for one connection: several times the window plus what is being sent. */
const sessionMemoryMaxMB = 4;
const pieceBytes = 65_536;
/** Fields that the edge adds to those of the client. */
const fieldsAdded = 16;

/** What links work with. */
type LinkContext = { readonly limits: EdgeLimits; readonly turns: Http2Turns };

/** A request in flight: its stream, and how far both sides are. */
type Call = {
  readonly stream: ClientHttp2Stream;
  /** The trailers so far; undefined: a field came that may not be there. */
  trailers: readonly Field[] | undefined;
  hasBody: boolean;
  answered: boolean;
  /** Interim responses so far. */
  interims: number;
};

/**
 * A connection to an HTTP/2 service, used like one that speaks HTTP/1.1: it parses the requests that the edge writes,
 * and writes responses for the edge to read. So a gRPC call obeys every rule that other requests do. It carries one
 * request at a time: limits, timeouts, backpressure and the end of a connection work as everywhere else.
 */
export class Http2Link implements ByteSocket, UpstreamUser {
  readonly remoteAddress = '';
  bytesWritten = 0;
  /** The connection as exchanges use it. */
  readonly upstream: Upstream;
  readonly #raw: Upstream;
  readonly #duplex: Duplex;
  readonly #input: Http2Input;
  readonly #session: ClientHttp2Session;
  readonly #scheme: 'http' | 'https';
  readonly #head: RequestHead;
  readonly #trailers: Trailers;
  readonly #body: BodyReader;
  readonly #interimsMax: number;
  #call: Call | null = null;
  #written: (() => void) | null = null;
  #closed = false;
  /** Nothing that is written goes anywhere any more. */
  #failed = false;

  /** Takes over a connection on which nothing was sent yet. */
  constructor(raw: Upstream, home: UpstreamHome, { limits, turns }: LinkContext, tls: boolean) {
    this.#raw = raw;
    this.#interimsMax = limits.interimResponsesMax;
    this.#scheme = tls ? 'https' : 'http';
    this.#head = new RequestHead(limits.headerLinesMax + fieldsAdded);
    this.#trailers = new Trailers(limits.headerLinesMax);
    this.#body = new BodyReader(
      (bytes, start, end) => this.#sendBody(bytes, start, end),
      (bytes, start, end) => this.#trailers.take(bytes, start, end),
    );
    this.#duplex = this.#openDuplex();
    this.#input = new Http2Input(turns, {
      give: bytes => this.#duplex.push(bytes),
      pause: () => raw.pause(),
      resume: () => raw.resume(),
    });
    this.upstream = new Upstream(home, { isHttp2: true });
    this.upstream.opened(this);
    const duplex = this.#duplex;
    this.#session = connect(`${this.#scheme}://sandbox`, { createConnection: () => duplex, ...sessionOptions(limits) });
    this.#session.on('error', error => this.#end(error));
    this.#session.on('goaway', () => this.#retire());
    this.#session.on('close', () => this.#end(this.#call && new Error('the service closed the connection')));
    const early = raw.early ?? [];
    raw.early = null;
    raw.user = this;
    raw.resume();
    for (const bytes of early) this.upstreamData(bytes);
    if (raw.ended) this.upstreamEnded();
  }

  write(bytes: Uint8Array, start = 0, length = bytes.length - start): number {
    if (this.#closed) return this.#fail(new Error('the connection was closed'));
    if (this.#failed) return -1;
    const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const end = start + length;
    let at = start;
    if (this.#call === null) {
      at = this.#begin(whole, start, end);
      if (at < 0) return -1;
    }
    // In pieces, so that no stream holds more than its buffer plus one piece: the runtime would accept any number of
    // bytes for a service that does not read.
    while (at < end && !this.#body.done && this.#call?.stream.writableNeedDrain === false && !this.#isFull) {
      at = this.#body.take(whole, at, Math.min(end, at + pieceBytes));
      if (this.#body.done) this.#endRequest(this.#call);
    }
    // Nobody takes the rest of a request that was answered.
    if (this.#call === null) at = end;
    this.bytesWritten += at - start;
    return at - start;
  }

  pause(): void {
    this.#call?.stream.pause();
  }

  resume(): void {
    this.#call?.stream.resume();
  }

  /** The client is most likely gone: the service is told. */
  shutdown(): void {
    this.#call?.stream.close(constants.NGHTTP2_CANCEL);
  }

  close(): void {
    if (this.#closed) return;
    this.#leave(null);
    this.#session.close();
    this.#raw.close();
  }

  terminate(): void {
    this.#leave(new Error('reset'));
    this.#session.destroy();
    this.#raw.terminate();
  }

  /** A request begins. Its head is whole, because exchanges write it at once. */
  #begin(bytes: Buffer, start: number, end: number): number {
    const position = this.#head.parse(bytes, start, end);
    if (position <= 0) return this.#fail(new Error('invariant broken: a head that is not whole was sent to a service'));
    const { kind, length } = this.#head.framing;
    this.#body.reset(kind, length);
    let stream: ClientHttp2Stream;
    try {
      stream = this.#session.request(headersOf(this.#head, this.#scheme), {
        endStream: kind === 'none',
        waitForTrailers: kind === 'chunked',
      });
    } catch (cause) {
      return this.#fail(new Error('the service takes no request', { cause }));
    }
    const call: Call = { stream, trailers: [], hasBody: false, answered: false, interims: 0 };
    this.#call = call;
    stream.on('headers', () => this.#countInterim(call));
    stream.on('response', (headers, flags) => this.#respond(call, headers, flags));
    stream.on('data', (data: Buffer) => this.#receive(call, data));
    stream.on('trailers', headers => (call.trailers = trailersOf(headers)));
    stream.on('end', () => this.#endResponse(call));
    stream.on('drain', () => this.#drained(call));
    stream.on('error', () => {
      // A close event follows.
    });
    stream.on('close', () => this.#streamClosed(call));
    return position;
  }

  /** No request can be sent. Its exchange returns from this `write` and hears of the failure in a later turn. */
  #fail(error: Error): -1 {
    this.#failed = true;
    setImmediate(() => {
      if (this.#closed) this.upstream.wasClosed(error);
      else this.#end(error);
    });
    return -1;
  }

  /** The service accepts no further request; the current one goes on. */
  #retire(): void {
    this.upstream.ended = true;
    if (this.#call === null) this.close();
  }

  #sendBody(bytes: Uint8Array, start: number, end: number): void {
    // The caller may reuse the bytes given here.
    if (start < end) this.#call?.stream.write(Buffer.from(bytes.subarray(start, end)));
  }

  #endRequest(call: Call): void {
    const { stream } = call;
    if (this.#body.kind === 'chunked') {
      const trailers = this.#body.hadTrailers ? (this.#trailers.read() ?? []) : [];
      stream.once('wantTrailers', () => sendTrailers(stream, trailers));
    }
    stream.end();
    if (call.answered) this.#call = null;
  }

  /** Interim responses are not passed on. */
  #countInterim(call: Call): void {
    if (++call.interims > this.#interimsMax) this.#end(new Error('there were too many interim responses'));
  }

  #respond(call: Call, headers: IncomingHttpHeaders & IncomingHttpStatusHeader, flags: number): void {
    const endsAtOnce = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    const toHead = this.#head.methodIs('HEAD');
    const head = responseHeadBytes(headers, { endsAtOnce, toHead });
    if (head === undefined) return this.#end(new Error('the head of the response is malformed'));
    call.hasBody = !endsAtOnce;
    if (endsAtOnce) call.answered = true;
    this.#emit(call, head);
  }

  #receive(call: Call, data: Buffer): void {
    if (data.length === 0) return;
    if (call.hasBody) this.#emit(call, chunkBytes(data));
    else this.#end(new Error('a body came without a head'));
  }

  #endResponse(call: Call): void {
    if (!call.hasBody || call.answered) return;
    if (call.trailers === undefined) return this.#end(new Error('the fields behind the body are malformed'));
    call.answered = true;
    this.#emit(call, bodyEndBytes(call.trailers));
  }

  #emit(call: Call, bytes: Buffer): void {
    if (this.#call !== call || this.#closed) return;
    const over = call.answered && this.#body.done;
    // From within this call, the exchange may give the connection to the next request.
    if (over) this.#call = null;
    this.upstream.user?.upstreamData(bytes);
  }

  #drained(call: Call): void {
    if (this.#call !== call || this.#closed) return;
    const { sendBuffer, user } = this.upstream;
    if (sendBuffer.idle || sendBuffer.flush()) user?.upstreamDrained();
  }

  #streamClosed(call: Call): void {
    if (this.#call !== call) return;
    // If the response is whole and the service wants no more of the request, the connection has to end.
    this.#end(call.answered ? undefined : new Error('the service reset the stream'));
  }

  upstreamData(bytes: Buffer): void {
    this.#input.take(bytes);
  }

  upstreamDrained(): void {
    const written = this.#written;
    this.#written = null;
    written?.();
    if (this.#call !== null) this.#drained(this.#call);
  }

  get #isFull(): boolean {
    return this.#duplex.writableLength >= pieceBytes;
  }

  /** Bytes that it sent before are still to be read. */
  upstreamEnded(): void {
    this.upstream.ended = true;
    this.#input.end();
  }

  upstreamClosed(error: Error | undefined): void {
    if (error !== undefined) this.#end(error);
    else this.#input.end();
  }

  cut(): void {
    this.#end(new Error('the sandbox ended'));
  }

  /** The connection can't be used any more; `error` if it did not end in order. */
  #end(error: Error | null | undefined): void {
    if (this.#closed) return;
    this.#leave(error ?? null);
    this.#session.destroy();
    this.#raw.terminate();
  }

  #leave(error: Error | null): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#raw.user = null;
    this.#input.drop();
    this.#duplex.destroy();
    this.upstream.wasClosed(error ?? undefined);
  }

  #openDuplex(): Duplex {
    const duplex = new Duplex({
      read: () => this.#input.wanted(),
      write: (bytes: Buffer, _encoding, done) => {
        if (this.#closed || this.#raw.sendBuffer.write(bytes, 0, bytes.length, false)) done();
        else this.#written = done;
      },
      final: done => done(),
    });
    duplex.on('error', () => {
      // Its session reports it.
    });
    duplex.on('end', () => setImmediate(() => this.#end(this.#call && new Error('the service closed the connection'))));
    return duplex;
  }
}

function sessionOptions({ responseHeadBytesMax, headerLinesMax }: EdgeLimits) {
  return {
    settings: { enablePush: false, initialWindowSize: windowBytes, maxHeaderListSize: responseHeadBytesMax },
    maxHeaderListPairs: headerLinesMax,
    maxSessionMemory: sessionMemoryMaxMB,
    // A field that comes twice passes unchanged, as in HTTP/1.1: the runtime would throw. Its types know this option
    // only for servers.
    strictSingleValueFields: false,
  };
}

/**
 * Nobody would hear an error thrown here. A request whose end can't be sent is reset: ended in order, it would look
 * whole.
 */
function sendTrailers(stream: ClientHttp2Stream, trailers: readonly Field[]): void {
  try {
    if (!stream.destroyed) stream.sendTrailers(trailersFor(trailers));
  } catch (cause) {
    stream.destroy(new Error('the fields behind the body can not be sent', { cause }));
  }
}
