import {
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { Duplex } from 'node:stream';
import type { ResponseLimits } from '../../http1/response-reader.ts';
import { ClientConnection, type Serve } from '../connection/client-connection.ts';
import type { Evictable, Seat } from '../clients/client-table.ts';
import type { ConnectionContext, OpenClient } from '../context.ts';
import { SendBuffer } from '../send-buffer.ts';
import { Http2Input } from '../http2-turns.ts';
import type { WaitingAccount } from '../waiting-bytes.ts';
import type { EdgeLimits } from '../limits.ts';
import { BodyBytes } from './body-bytes.ts';
import { OpenHead } from './open-head.ts';
import { requestBytes } from './request-bytes.ts';
import { type SocketUser, StreamSocket } from './stream-socket.ts';

const streamsMax = 256;
/** What a client may send ahead on one stream: bounds what the edge holds for it. */
const windowBytes = 1_048_576;
/** Memory of a stream, besides the bytes that it holds. */
const streamBytes = 16_384;
/** What the runtime may hold for one connection; more than all stream windows and send buffers together. */
const sessionMemoryMaxMB = 64;
/** What may wait for the kernel before streams must wait. */
const queuedBytesMax = 65_536;
/**
 * The same plus what streams held when their windows opened and answers to pings: more than a client may have waiting.
 */
const heldBytesMax = sessionMemoryMaxMB * 1_048_576;
/**
 * Streams that a client may reset per interval before it is disconnected: opening and resetting a stream costs the edge
 * more than the client.
 */
const resetsMax = 500;
const resetsIntervalMs = 10_000;

/** A client's HTTP/2 connection. Each stream is served like an HTTP/1.1 connection of its own. */
export class Http2Connection implements SocketUser, OpenClient, Evictable {
  deadlineMs: number;
  readonly #context: ConnectionContext;
  readonly #serve: Serve;
  readonly #socket: Bun.Socket<SocketUser>;
  readonly #seat: Seat;
  readonly #secure: boolean;
  readonly #sendBuffer: SendBuffer;
  readonly #duplex: Duplex;
  readonly #input: Http2Input;
  readonly #session: ServerHttp2Session;
  readonly carried = new BodyBytes();
  /** Bytes handed to the kernel. */
  #sentBytes = 0;
  /** Closed streams whose last bytes are still on their way: the count of sent bytes from which on they are gone. */
  readonly #leaving: { readonly from: number; leave(): void }[] = [];
  /** When the client last took something, or when the first of those streams began to wait. */
  #takenMs = 0;
  readonly #streams = new Set<StreamSocket>();
  readonly #account: WaitingAccount;
  readonly #openHead = new OpenHead();
  #resets = 0;
  #resetsSinceMs = 0;
  #written: (() => void) | null = null;
  #closed = false;

  /** Takes over the place that the connection has held since it was accepted. */
  constructor(context: ConnectionContext, socket: Bun.Socket<SocketUser>, secure: boolean, seat: Seat, serve: Serve) {
    this.#secure = secure;
    this.#serve = serve;
    this.#seat = seat;
    seat.owner = this;
    this.#context = context;
    this.#socket = socket;
    this.#sendBuffer = new SendBuffer(socket);
    this.#account = context.waiting.account(seat.origin.network, () => this.terminate());
    this.#duplex = this.#openDuplex();
    this.#input = new Http2Input(context.turns, {
      give: bytes => this.#give(bytes),
      pause: () => socket.pause(),
      resume: () => socket.resume(),
    });
    this.deadlineMs = context.clock.nowMs + context.limits.firstByteTimeoutMs;
    this.#session = performServerHandshake(this.#duplex, {
      settings: {
        maxConcurrentStreams: streamsMax,
        initialWindowSize: windowBytes,
        maxHeaderListSize: context.limits.requestHeadBytesMax,
        enablePush: false,
        enableConnectProtocol: true,
      },
      maxHeaderListPairs: context.limits.headerLinesMax,
      maxSessionMemory: sessionMemoryMaxMB,
    });
    // The same as the streams' window: the runtime mistakes a different value for a change of theirs.
    this.#session.setLocalWindowSize(windowBytes);
    this.#session.on('stream', (stream, headers) => this.#begin(stream, headers));
    this.#session.on('error', () => this.terminate());
    this.#session.on('close', () => this.#socket.close());
    context.clients.add(this);
  }

  get remoteAddress(): string {
    return this.#socket.remoteAddress;
  }

  /** The client takes no more at the moment. */
  get isFull(): boolean {
    return this.#duplex.writableLength >= queuedBytesMax;
  }

  #begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const request = requestBytes(headers, stream.endAfterHeaders ?? false);
    if (request === undefined) {
      stream.on('error', () => {});
      stream.respond({ ':status': 400 }, { endStream: true });
      return;
    }
    const { limits } = this.#context;
    this.#seat.busy();
    const socket = new StreamSocket(stream, this, request, headers[':method'] === 'HEAD', ofOwnResponses(limits));
    const client = new ClientConnection(this.#context, socket, this.#secure, this.#serve, this.#seat.origin, null);
    client.isGrpc = request.isGrpc;
    this.#context.clients.add(client);
    this.#streams.add(socket);
    this.#countWaiting();
    this.#setDeadline();
    stream.on('close', () => {
      const leave = () => this.#ended(socket, stream.aborted);
      const waiting = this.#duplex.writableLength;
      if (waiting === 0 || !socket.isAnswered) return leave();
      // That more is waiting now says nothing about the client.
      if (this.#leaving.push({ from: this.#sentBytes + waiting, leave }) === 1) this.#expectSome();
      else this.#setDeadline();
    });
    socket.serve(client, request.head);
  }

  /** Whole responses wait for the kernel: a client that takes none of them in time is gone. */
  #expectSome(): void {
    this.#takenMs = this.#context.clock.nowMs;
    this.#setDeadline();
  }

  /** A client with other streams may be asleep: it gets the time that an HTTP/1.1 stream gets. */
  #setDeadline(): void {
    const { unreadTimeoutMs, streamIdleTimeoutMs } = this.#context.limits;
    const waitMs = this.#leaving.length < this.#streams.size ? streamIdleTimeoutMs : unreadTimeoutMs;
    this.deadlineMs = this.#leaving.length > 0 ? this.#takenMs + waitMs : Number.POSITIVE_INFINITY;
  }

  /** Streams leave once their last byte is with the kernel: until then, what waits counts as theirs. */
  #letLeave(): void {
    if (this.#leaving.length === 0) return;
    for (let first = this.#leaving[0]; first !== undefined && first.from <= this.#sentBytes; first = this.#leaving[0]) {
      this.#leaving.shift();
      first.leave();
    }
    if (this.#streams.size > 0) this.#expectSome();
  }

  #ended(socket: StreamSocket, aborted: boolean): void {
    const { clock, limits } = this.#context;
    socket.wasClosed();
    this.#streams.delete(socket);
    this.#countWaiting();
    if (this.#streams.size === 0) {
      this.deadlineMs = clock.nowMs + limits.keepAliveTimeoutMs;
      this.#seat.idle(clock.nowMs);
    } else {
      this.#setDeadline();
    }
    if (!aborted) return;
    if (clock.nowMs - this.#resetsSinceMs > resetsIntervalMs) {
      this.#resets = 0;
      this.#resetsSinceMs = clock.nowMs;
    }
    if (++this.#resets > resetsMax) this.terminate();
  }

  received(bytes: Buffer): void {
    if (this.#duplex.writableLength > heldBytesMax) return this.terminate();
    this.#input.take(bytes);
    this.#countWaiting();
  }

  drained(): void {
    if (this.#sendBuffer.idle) return;
    if (this.#leaving.length > 0) this.#expectSome();
    if (!this.#sendBuffer.flush()) return;
    this.#countWaiting();
    const written = this.#written;
    this.#written = null;
    written?.();
    this.#letLeave();
    for (const stream of [...this.#streams]) {
      if (this.isFull) return;
      // A stream that has had its turn goes to the end of the queue.
      if (this.#streams.delete(stream)) this.#streams.add(stream);
      stream.drained();
    }
  }

  /** What waits in either direction, and the streams themselves, which a client may have without a key. */
  #countWaiting(): void {
    let bytes = this.#duplex.writableLength;
    for (const stream of this.#streams) bytes += streamBytes + stream.heldBytes;
    this.#account.set(bytes);
  }

  halfClosed(): void {
    // Half a connection is of no use to HTTP/2: without window updates from the client nothing can be sent for long.
    this.#socket.close();
  }

  wasClosed(error: Error | undefined): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#context.clients.delete(this);
    this.#input.drop();
    this.#account.close();
    this.#context.largeHeads.ends(this);
    this.#seat.leave();
    for (const stream of this.#streams) stream.lost(error);
    this.#session.destroy(error);
    this.#duplex.destroy();
  }

  #give(bytes: Buffer | null): boolean {
    if (bytes !== null) {
      this.#openHead.take(bytes);
      if (this.#openHead.bytes > 0) this.#context.largeHeads.grows(this, this.#openHead.bytes);
      else this.#context.largeHeads.ends(this);
    }
    return this.#duplex.push(bytes);
  }

  /** Too many large heads arrive, and this one longest. */
  refuseHead(): void {
    this.terminate();
  }

  expired(): void {
    this.terminate();
  }

  evict(): void {
    this.terminate();
  }

  retire(): void {
    this.#session.close();
  }

  terminate(): void {
    if (!this.#closed) this.#socket.terminate();
  }

  #openDuplex(): Duplex {
    const duplex = new Duplex({
      read: () => {
        if (!this.#closed) this.#input.wanted();
      },
      write: (bytes: Buffer, _encoding, done) => {
        this.carried.take(bytes);
        const sent = () => {
          this.#sentBytes += bytes.length;
          done();
        };
        if (this.#sendBuffer.write(bytes, 0, bytes.length, false)) sent();
        else this.#written = sent;
      },
      final: done => {
        this.#sendBuffer.finish();
        done();
      },
    });
    duplex.on('error', () => this.terminate());
    return duplex;
  }
}

/** What the edge adds to a response that passes. */
const added = { lines: 4, bytes: 1024 } as const;

/** Bounds of responses as the edge writes them: what it lets pass plus what it adds. */
function ofOwnResponses({ responseHeadBytesMax, headerLinesMax, interimResponsesMax }: EdgeLimits): ResponseLimits {
  return {
    headBytesMax: responseHeadBytesMax + added.bytes,
    fieldsMax: headerLinesMax + added.lines,
    interimsMax: interimResponsesMax,
  };
}
