import type { Share } from '../../base/concurrency/share.ts';
import type { Destination } from '../../protocol/network/hosts.ts';
import type { Answer } from '../answer/answer.ts';
import { plainAnswer } from '../answer/answer.ts';
import { answerBytes } from '../answer/answer-bytes.ts';
import { grpcAnswerBytes } from '../answer/grpc-answer.ts';
import type { Evictable, Origin, Seat } from '../clients/client-table.ts';
import { type Client, type ClientUser, closesAfter } from './client.ts';
import type { ConnectionContext, OpenClient } from '../context.ts';
import { BodyReader } from '../../http1/body-reader.ts';
import { JoinedBytes } from '../../http1/joined-bytes.ts';
import { headMayBeWhole } from '../../http1/head-end.ts';
import type { RequestHead } from '../../http1/request-head.ts';
import { type ByteSocket, SendBuffer } from '../send-buffer.ts';
import type { WaitingAccount } from '../waiting-bytes.ts';
import { HalfCloseWatch } from './half-close-watch.ts';
import { UnreadWatch } from './unread-watch.ts';

/** What a connection is doing. It carries any number of requests, one after another. */
type Phase =
  /** Between requests, or reading a head. */
  | { readonly kind: 'head' }
  /** A head was read; its upstream is being found. */
  | { readonly kind: 'routing'; readonly abort: AbortController }
  /** A request is in progress, or the upgraded connection that it became. */
  | { readonly kind: 'use'; readonly user: ClientUser }
  /** The edge has answered and skips the rest of the request's body. */
  | { readonly kind: 'skip'; skipped: number; readonly thenClose: boolean }
  /** The last bytes were sent; what the client sends is dropped until it closes. */
  | { readonly kind: 'closing' }
  | { readonly kind: 'closed' };

/** Sends a request to its destination, or refuses it. The next request overwrites `head`. */
export type Serve = (client: Client, head: RequestHead) => void;

const betweenRequests: Phase = { kind: 'head' };

/** A client's connection: reads heads, hands each request to `serve`, and keeps the order of requests and responses. */
export class ClientConnection implements Client, OpenClient, Evictable {
  readonly context: ConnectionContext;
  readonly socket: ByteSocket;
  readonly sendBuffer: SendBuffer;
  readonly secure: boolean;
  readonly address: string;
  readonly origin: Origin;
  /** Null for an HTTP/2 stream: its connection holds the seat. */
  readonly seat: Seat | null;
  readonly forwardedLines: Buffer;
  readonly body = new BodyReader();
  deadlineMs: number;
  ended = false;
  isGrpc = false;
  input: Buffer | null = null;
  inputAt = 0;
  lastHost: string | null = null;
  lastDestination: Destination | null = null;
  readonly #serve: Serve;
  /** What waits for the client, and what waits of it. */
  readonly #unsent: WaitingAccount;
  readonly #unused: WaitingAccount;
  #phase: Phase = betweenRequests;
  /** How much of the input was searched for the end of a head that arrives in pieces; 0: none yet. */
  #searched = 0;
  readonly #joined = new JoinedBytes();
  #advancing = false;
  #isFresh = true;
  #paused = false;
  readonly #halfClosed = new HalfCloseWatch();
  /** Null where sent bytes are handed to the kernel, which waits for nobody. */
  readonly #unread: UnreadWatch | null;
  /** The share of a finished request, held until the client has taken the response. */
  #place: Share | null = null;

  constructor(
    context: ConnectionContext,
    socket: ByteSocket,
    secure: boolean,
    serve: Serve,
    origin: Origin,
    seat: Seat | null,
  ) {
    this.context = context;
    this.origin = origin;
    this.seat = seat;
    this.socket = socket;
    this.sendBuffer = new SendBuffer(socket);
    this.#unsent = context.waiting.account(origin.network, () => this.terminate());
    this.#unused = context.waiting.account(origin.network, () => this.terminate());
    this.sendBuffer.countIn(this.#unsent);
    this.secure = secure;
    // An IPv4 client on a socket that serves both families.
    this.address = socket.remoteAddress.replace(/^::ffff:(?=\d+\.)/, '');
    this.forwardedLines = Buffer.from(
      `X-Forwarded-For: ${this.address}\r\nX-Forwarded-Proto: ${secure ? 'https' : 'http'}\r\nX-Forwarded-Host: `,
    );
    this.deadlineMs = context.clock.nowMs + context.limits.firstByteTimeoutMs;
    this.#unread = socket.bytesCarried === undefined ? null : new UnreadWatch(socket, context.limits);
    this.#serve = serve;
  }

  /** No byte has come yet. */
  get isFresh(): boolean {
    return this.#isFresh;
  }

  countFor(group: string): void {
    this.#unsent.moveTo(group);
    this.#unused.moveTo(group);
  }

  use(position: number): void {
    this.inputAt = position;
    if (this.input !== null && position >= this.input.length) {
      this.input = null;
      this.inputAt = 0;
      this.#joined.forget();
    }
  }

  /** Bytes came. */
  received(bytes: Buffer): void {
    this.#isFresh = false;
    const rest = this.input;
    if (rest === null) {
      this.input = bytes;
    } else {
      this.#searched = Math.max(0, this.#searched - this.inputAt);
      this.input = this.#joined.join(rest.subarray(this.inputAt), bytes);
    }
    this.inputAt = 0;
    this.#advance();
  }

  /** Uses as much of the input as the phase allows. Called after every change that it may have been waiting for. */
  #advance(): void {
    // A request that is answered at once calls back into this function: the loop below goes on with the next one.
    if (this.#advancing) return;
    this.#advancing = true;
    while (this.input !== null && this.#step(this.input));
    this.#advancing = false;
    this.#afterInput();
  }

  /** Uses some of the input. False: the rest must wait. */
  #step(input: Buffer): boolean {
    const phase = this.#phase;
    switch (phase.kind) {
      case 'head':
        // Responses that the client doesn't read must not pile up.
        return this.sendBuffer.idle && this.#readHead(input);
      case 'use':
        return phase.user.clientInput();
      case 'skip':
        return this.#skip(phase, input);
      case 'routing':
        return false;
      case 'closing':
      case 'closed':
        this.use(input.length);
        return false;
    }
  }

  #afterInput(): void {
    this.#unused.set(this.input?.length ?? 0);
    if (this.input !== null && this.input.length - this.inputAt > this.context.limits.pipelineBytesMax) this.pause();
    if (this.ended && this.#phase.kind === 'head' && this.sendBuffer.idle) this.close();
  }

  #readHead(input: Buffer): boolean {
    const { limits, requestHead: head } = this.context;
    const start = this.inputAt;
    if (this.#searched === 0 || headMayBeWhole(input, this.#searched)) {
      const end = head.parse(input, start, input.length);
      if (end < 0) return this.refuseHead(head.fault.status, head.fault.reason);
      if (end > 0 && end - start <= limits.requestHeadBytesMax) {
        this.#endHead();
        this.use(end);
        this.body.reset(head.framing.kind, head.framing.length);
        this.seat?.busy();
        this.countFor(this.origin.network);
        this.#serve(this, head);
        return true;
      }
    }
    if (input.length - start > limits.requestHeadBytesMax) return this.refuseHead(431, 'its head is too large');
    if (this.#searched === 0) this.deadlineMs = this.context.clock.nowMs + limits.headTimeoutMs;
    this.#searched = input.length;
    this.context.largeHeads.grows(this, input.length - start);
    return false;
  }

  /** Heads that arrive in one piece, as most do, cost no lookup. */
  #endHead(): void {
    if (this.#searched > 0) this.context.largeHeads.ends(this);
    this.#searched = 0;
  }

  refuseHead(status: number, reason: string): false {
    this.#send(answerBytes(plainAnswer(status, `The request could not be read: ${reason}`), null, true));
    this.close();
    return false;
  }

  refuse(answer: Answer, head: RequestHead): void {
    const { framing } = head;
    // The client may wait for a 100 before it sends the body, or never send it: what comes next is unknown.
    const uncertain = !this.body.done && head.fields.has('expect');
    const large = framing.kind === 'length' && framing.length > this.context.limits.discardBytesMax;
    const thenClose = uncertain || large || this.context.stopping || closesAfter(head);
    this.#send(this.isGrpc ? grpcAnswerBytes(answer) : answerBytes(answer, head, thenClose));
    if (uncertain || large) this.close();
    else this.skipRequest(thenClose);
  }

  skipRequest(close: boolean): void {
    if (this.#phase.kind === 'closed') return;
    if (this.body.done) return this.endUse(close);
    if (this.ended) return this.close();
    this.#phase = { kind: 'skip', skipped: 0, thenClose: close };
    this.deadlineMs = this.context.clock.nowMs + this.context.limits.headTimeoutMs;
    this.resume();
    this.#advance();
  }

  #skip(phase: Extract<Phase, { kind: 'skip' }>, input: Buffer): boolean {
    const position = this.body.take(input, this.inputAt, input.length);
    phase.skipped += position - this.inputAt;
    if (position < 0 || phase.skipped > this.context.limits.discardBytesMax) {
      this.close();
      return true;
    }
    this.use(position);
    if (this.body.done) this.endUse(phase.thenClose);
    return this.body.done;
  }

  beginRouting(): AbortSignal {
    const abort = new AbortController();
    this.#phase = { kind: 'routing', abort };
    this.deadlineMs = Number.POSITIVE_INFINITY;
    return abort.signal;
  }

  get isRouting(): boolean {
    return this.#phase.kind === 'routing';
  }

  beginUse(user: ClientUser): void {
    this.#phase = { kind: 'use', user };
    this.deadlineMs = this.context.clock.nowMs + this.context.limits.streamIdleTimeoutMs;
    this.resume();
    this.#advance();
  }

  giveBack(place: Share): void {
    if (this.#unread === null || this.#phase.kind === 'closed') place.give();
    else this.#place = place;
  }

  endUse(close: boolean): void {
    if (this.#phase.kind === 'closed') return;
    if (close || this.context.stopping) return this.close();
    const { clock, limits } = this.context;
    this.#phase = betweenRequests;
    this.deadlineMs = this.#unread?.begin(clock.nowMs) ?? clock.nowMs + limits.keepAliveTimeoutMs;
    // A client that hasn't read its last response yet keeps the place.
    if (this.sendBuffer.idle) this.seat?.idle(clock.nowMs);
    this.resume();
    this.#advance();
  }

  pause(): void {
    if (this.#paused || this.#phase.kind === 'closed') return;
    this.#paused = true;
    this.socket.pause();
  }

  resume(): void {
    if (!this.#paused || this.#phase.kind === 'closed') return;
    this.#paused = false;
    this.socket.resume();
  }

  terminate(): void {
    if (this.#phase.kind !== 'closed') this.socket.terminate();
  }

  /**
   * Sends what is waiting and a FIN, then drops whatever the client still sends, so that no RST overtakes the last
   * answer.
   */
  close(): void {
    if (this.#phase.kind === 'closed') return;
    const { clock, limits } = this.context;
    this.#endHead();
    this.#phase = { kind: 'closing' };
    if (this.sendBuffer.idle) this.seat?.idle(clock.nowMs);
    this.deadlineMs = this.#unread?.begin(clock.nowMs) ?? clock.nowMs + limits.lingerTimeoutMs;
    this.use(this.input?.length ?? 0);
    this.#halfClosed.end();
    if (this.ended && this.sendBuffer.idle) return void this.socket.close();
    this.sendBuffer.finish();
    this.resume();
  }

  retire(): void {
    if (this.#phase.kind === 'head' && this.input === null) this.close();
  }

  drained(): void {
    if (this.sendBuffer.idle || !this.sendBuffer.flush()) return;
    const phase = this.#phase;
    if (phase.kind === 'head' || phase.kind === 'closing') this.seat?.idle(this.context.clock.nowMs);
    if (phase.kind === 'use') phase.user.clientDrained();
    else if (phase.kind === 'closing' && this.ended) this.socket.close();
    else this.#advance();
  }

  /** The client closed its sending side. */
  halfClosed(): void {
    this.ended = true;
    const phase = this.#phase;
    switch (phase.kind) {
      case 'head':
        this.#afterInput();
        break;
      case 'routing':
        this.watchHalfClosed();
        break;
      case 'use':
        phase.user.clientEnded();
        break;
      case 'skip':
        this.close();
        break;
      case 'closing':
        if (this.sendBuffer.idle) this.socket.close();
        break;
      case 'closed':
        break;
    }
  }

  watchHalfClosed(): void {
    this.#halfClosed.begin(this.socket, this.context.limits.halfCloseGraceMs, () => {
      if (this.#phase.kind === 'routing') this.terminate();
      else if (this.#phase.kind === 'use') this.#phase.user.clientGone();
    });
  }

  /** The connection is gone. */
  wasClosed(error: Error | undefined): void {
    const phase = this.#phase;
    this.#phase = { kind: 'closed' };
    this.#endHead();
    this.input = null;
    this.#unsent.close();
    this.#unused.close();
    this.#halfClosed.end();
    this.context.clients.delete(this);
    this.seat?.leave();
    this.#place?.give();
    this.#place = null;
    if (phase.kind === 'routing') phase.abort.abort();
    if (phase.kind === 'use') phase.user.clientClosed(error);
  }

  evict(): void {
    // The descriptor is needed at once; TLS would wait for the client's close message.
    if (this.#phase.kind === 'closed') return;
    if (this.secure) this.socket.terminate();
    else this.socket.close();
  }

  expired(): void {
    const { kind } = this.#phase;
    if (this.#unread !== null && (kind === 'head' || kind === 'closing')) this.#lookWhoReads(this.#unread);
    else if (kind === 'head' && this.input !== null) this.refuseHead(408, 'it took too long to arrive');
    else if (kind === 'head' || kind === 'skip') this.close();
    else if (kind === 'closing') this.socket.close();
    else this.terminate();
  }

  #lookWhoReads(unread: UnreadWatch): void {
    const deadlineMs = unread.look(this.context.clock.nowMs);
    if (deadlineMs === undefined) this.terminate();
    else this.deadlineMs = deadlineMs;
  }

  #send(bytes: Buffer): void {
    this.sendBuffer.write(bytes, 0, bytes.length, false);
  }
}
