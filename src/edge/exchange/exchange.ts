import { sandboxNotFound } from '../answer/answer.ts';
import { type Client, type ClientUser, closesAfter } from '../connection/client.ts';
import { listHas } from '../../http1/list.ts';
import { composeRequest } from './compose-request.ts';
import { composeForeignHead, composeResponse, needsRewrite, speaksForOrigin } from './compose-response.ts';
import { BodyReader } from '../../http1/body-reader.ts';
import { keepRequestHead, type RequestHead } from '../../http1/request-head.ts';
import type { ResponseHead } from '../../http1/response-head.ts';
import { type HeadUser, ResponseHeads } from './response-heads.ts';
import { Splice } from './splice.ts';
import { beginsHttp2 } from '../upstream/http2/first-frame.ts';
import { type ExchangeTarget, failureOf, goesOn, isSafeToRepeat } from './target.ts';
import type { Upstream, UpstreamUser } from '../upstream/upstream.ts';

/** How far a request and its response have come. */
type State =
  /** The request is in flight, and its final response has not begun. */
  | Awaiting
  /** The head of the final response was passed on; its body follows. */
  | { readonly kind: 'responding' }
  /** The response is whole. The rest of the request, or its unsent bytes, still goes to the upstream. */
  | { readonly kind: 'answered' }
  /** The connections have another user, or are gone. */
  | { readonly kind: 'over' };

type Awaiting = {
  readonly kind: 'awaiting';
  /** The bytes that hold the request's head: to send it again, or to see which kind of error the client wants. */
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly heads: ResponseHeads;
};

/** RFC 2518, 10.1. HTTP/1.1 clients skip it (RFC 9110, 15.2). */
const processing = Buffer.from('HTTP/1.1 102 Processing\r\n\r\n');

const responding: State = { kind: 'responding' };
const answered: State = { kind: 'answered' };
const over: State = { kind: 'over' };

/**
 * One request and its response in transit. Bytes are passed on as they come; a side that can't take more makes the
 * other one wait.
 */
export class Exchange implements UpstreamUser, ClientUser, HeadUser {
  readonly #client: Client;
  readonly #target: ExchangeTarget;
  readonly #upstream: Upstream;
  /** Serves the request again over a new connection. */
  readonly #retry: (client: Client, head: RequestHead) => void;
  readonly #responseBody = new BodyReader();
  readonly #toHead: boolean;
  readonly #expects: boolean;
  readonly #minorVersion: number;
  readonly #replayable: boolean;
  readonly #hasBody: boolean;
  #state: State;
  /** The client's connection can't carry another request. */
  #closeAfter: boolean;
  /** The upstream's connection can. */
  #reusable = true;

  constructor(
    client: Client,
    target: ExchangeTarget,
    upstream: Upstream,
    head: RequestHead,
    retry: (client: Client, head: RequestHead) => void,
  ) {
    this.#client = client;
    this.#target = target;
    this.#upstream = upstream;
    this.#retry = retry;
    this.#toHead = head.methodIs('HEAD');
    this.#expects = head.fields.has('expect');
    this.#minorVersion = head.minorVersion;
    this.#closeAfter = closesAfter(head);
    this.#state = {
      kind: 'awaiting',
      bytes: head.bytes,
      start: head.start,
      end: head.end,
      heads: new ResponseHeads(this),
    };
    this.#hasBody = head.framing.kind !== 'none';
    this.#replayable = upstream.served > 0 && !this.#hasBody && isSafeToRepeat(head);
    upstream.user = this;
  }

  /** Sends the head and what has arrived of the body. */
  begin(head: RequestHead): void {
    const client = this.#client;
    const { sendBuffer } = this.#upstream;
    const { scratch } = client.context;
    let length = composeRequest(scratch, head, client, this.#target.plan);
    const { input, body } = client;
    let flowing = true;
    if (input === null || body.done) {
      flowing = sendBuffer.write(scratch, 0, length, true);
    } else {
      const at = client.inputAt;
      const position = body.take(input, at, input.length);
      if (position < 0) return this.#breakRequest();
      client.use(position);
      if (position - at <= scratch.length - length) {
        // Head and body go in one segment: small requests are the most frequent.
        length += input.copy(scratch, length, at, position);
        flowing = sendBuffer.write(scratch, 0, length, true);
      } else {
        sendBuffer.write(scratch, 0, length, true);
        flowing = sendBuffer.write(input, at, position, false);
      }
    }
    client.beginUse(this);
    if (this.#target.traffic === null && !body.done) this.#touch();
    if (!flowing) client.pause();
    if (client.ended) this.clientEnded();
  }

  clientInput(): boolean {
    const client = this.#client;
    const { input, inputAt, body } = client;
    if (this.#state.kind === 'over' || input === null || body.done) return false;
    const position = body.take(input, inputAt, input.length);
    if (position < 0) {
      this.#breakRequest();
      return true;
    }
    client.use(position);
    this.#touch();
    if (!this.#upstream.sendBuffer.write(input, inputAt, position, false)) {
      client.pause();
      return false;
    }
    if (this.#state.kind !== 'answered' || !body.done) return false;
    this.#complete();
    // The rest belongs to the next request.
    return true;
  }

  upstreamData(bytes: Buffer): void {
    this.#touch();
    if (this.#state.kind === 'awaiting') this.#readHead(this.#state.heads, bytes);
    else this.#passBody(bytes, 0, 0);
  }

  #readHead(heads: ResponseHeads, bytes: Buffer): void {
    if (!heads.begun && !this.#upstream.isHttp2 && beginsHttp2(bytes)) this.#askInHttp2();
    else heads.read(bytes, this.#client.context);
  }

  /** The service speaks only HTTP/2, so it has understood nothing of the request. */
  #askInHttp2(): void {
    const { traffic, port, plan } = this.#target;
    if (traffic === null || plan.upgrade) return this.invalidHead('it speaks HTTP/2');
    const before = this.#fail();
    traffic.heard(port, 'h2');
    if (before === undefined) return;
    const head = this.#headOf(before);
    if (!this.#hasBody) this.#retry(this.#client, head);
    else this.#client.refuse(failureOf(this.#target, 'speaks HTTP/2, which is known now: send it again', head), head);
  }

  interimHead(head: ResponseHead, input: Buffer): void {
    // A client that didn't ask for it could take a 100 for the answer; HTTP/1.0 has no interim responses.
    if (this.#minorVersion === 0 || (head.status === 100 && !this.#expects)) return;
    if (!this.#isStripped(head)) return this.#toClient(input, head.start, head.end, false);
    const { scratch } = this.#client.context;
    this.#toClient(scratch, 0, composeForeignHead(scratch, head), true);
  }

  #isStripped(head: ResponseHead): boolean {
    return this.#target.isForeign && speaksForOrigin(head);
  }

  finalHead(head: ResponseHead, input: Buffer): void {
    if (head.status === 101) return this.#switchProtocols(head, input);
    const { protocol, served } = this.#upstream;
    // A service that speaks both gets only gRPC calls in HTTP/2.
    if (served === 0 && !this.#client.isGrpc) this.#target.traffic?.heard(this.#target.port, protocol);
    const framing = head.framing(this.#toHead);
    if (framing === undefined) return this.invalidHead('where its body ends is ambiguous');
    this.#state = responding;
    this.#responseBody.reset(framing.kind, framing.length);
    if (framing.kind === 'close' || this.#client.context.stopping) this.#closeAfter = true;
    this.#reusable = this.#reusable && this.#keepsAlive(head);
    const { isForeign, isInert } = this.#target;
    const plan = { close: this.#closeAfter, isForeign, isInert };
    if (!needsRewrite(head, plan)) return this.#passBody(input, head.start, head.end);
    const { scratch } = this.#client.context;
    const length = composeResponse(scratch, head, plan);
    const bodyEnd = Math.min(input.length, head.end + scratch.length - length);
    const position = this.#responseBody.take(input, head.end, bodyEnd);
    if (position < 0) return this.#truncated();
    input.copy(scratch, length, head.end, position);
    this.#toClient(scratch, 0, length + position - head.end, true);
    if (position === bodyEnd && bodyEnd < input.length) this.#passBody(input, position, position);
    else this.#afterBody(position < input.length);
  }

  /** Passes on `bytes` from `start`; the body begins at `bodyStart`. */
  #passBody(bytes: Buffer, start: number, bodyStart: number): void {
    const position = this.#responseBody.take(bytes, bodyStart, bytes.length);
    if (position < 0) return this.#truncated();
    this.#toClient(bytes, start, position, false);
    this.#afterBody(position < bytes.length);
  }

  #afterBody(excess: boolean): void {
    // Bytes after a response belong to no request: drop them together with their connection.
    if (excess) this.#reusable = false;
    if (this.#responseBody.done) this.#endResponse();
  }

  #endResponse(): void {
    if (this.#state.kind !== 'responding') return;
    this.#state = answered;
    if (this.#client.body.done && this.#upstream.sendBuffer.idle) this.#complete();
    else if (this.#upstream.ended || this.#upstream.closed) this.#abandonRequest();
  }

  #toClient(bytes: Buffer, start: number, end: number, borrowed: boolean): void {
    if (start >= end || this.#client.sendBuffer.write(bytes, start, end, borrowed)) return;
    this.#upstream.pause();
    const { clock, limits } = this.#client.context;
    if (this.#target.traffic === null) this.#client.deadlineMs = clock.nowMs + limits.unreadTimeoutMs;
  }

  /** Whether the server keeps the connection; records for how long, if it says so. */
  #keepsAlive(head: ResponseHead): boolean {
    const { fields } = head;
    const seconds = /timeout=(\d{1,6})/i.exec(fields.text('keep-alive') ?? '')?.[1];
    // One second less than promised: the server starts counting a little earlier than we do.
    if (seconds !== undefined) this.#upstream.keepMs = Math.max(0, Number(seconds) - 1) * 1000;
    return head.minorVersion === 1 && this.#minorVersion === 1 && !listHas(fields.list('connection'), 'close');
  }

  #switchProtocols(head: ResponseHead, input: Buffer): void {
    if (!this.#target.plan.upgrade || !this.#client.body.done) return this.invalidHead('it switched protocols unasked');
    // From now on the splice holds the place.
    this.#state = over;
    const splice = new Splice(this.#client, this.#upstream, this.#target.place);
    this.#upstream.user = splice;
    if (this.#isStripped(head)) {
      const { scratch } = this.#client.context;
      const length = composeForeignHead(scratch, head);
      splice.upstreamData(Buffer.concat([scratch.subarray(0, length), input.subarray(head.end)]));
    } else {
      splice.upstreamData(input.subarray(head.start));
    }
    this.#client.beginUse(splice);
    if (this.#client.ended) splice.clientEnded();
  }

  /** Both directions are over: the connection may serve another request. */
  #complete(): void {
    this.#leave(true);
    const upstream = this.#upstream;
    // Servers treat trailers differently: if one took them for another request, the next client would get its answer.
    const hadTrailers = this.#client.body.hadTrailers || this.#responseBody.hadTrailers;
    const mayHaveTrailers = !hadTrailers || upstream.isHttp2;
    if (this.#reusable && mayHaveTrailers && !upstream.ended && !upstream.closed) {
      // It may have been paused for this client's last bytes.
      upstream.resume();
      upstream.home.give(upstream, this.#client.context.clock.nowMs);
    } else {
      upstream.close();
    }
    this.#client.endUse(this.#closeAfter);
  }

  /** The response is over, and nobody takes the rest of the request. */
  #abandonRequest(): void {
    this.#leave(true);
    this.#upstream.terminate();
    this.#client.skipRequest(this.#closeAfter);
  }

  upstreamDrained(): void {
    this.#client.resume();
    if (this.#state.kind === 'answered' && this.#client.body.done) this.#complete();
  }

  upstreamEnded(): void {
    switch (this.#state.kind) {
      case 'awaiting':
        return this.#truncated();
      case 'responding':
        if (this.#responseBody.kind === 'close' && goesOn(this.#target)) this.#endResponse();
        else this.#truncated();
        return;
      case 'answered':
        return this.#abandonRequest();
      case 'over':
        return;
    }
  }

  upstreamClosed(error: Error | undefined): void {
    if (error === undefined || this.#state.kind === 'answered') this.upstreamEnded();
    else if (this.#state.kind !== 'over') this.#truncated();
  }

  /** The upstream closed before the end of the response. */
  #truncated(): void {
    const before = this.#fail();
    if (before === undefined) return;
    const head = this.#headOf(before);
    if (this.#replayable && !before.heads.begun) this.#retry(this.#client, head);
    else this.#client.refuse(failureOf(this.#target, 'closed the connection without an answer', head), head);
  }

  /** The upstream does not speak HTTP, or tries to confuse somebody. */
  invalidHead(reason: string): void {
    const { log } = this.#client.context;
    log.debug('invalid response', { sandboxId: this.#target.traffic?.sandboxId, port: this.#target.port, reason });
    const before = this.#fail();
    if (before === undefined) return;
    const head = this.#headOf(before);
    this.#client.refuse(failureOf(this.#target, `did not answer in valid HTTP/1.1: ${reason}`, head), head);
  }

  /** The request's body is malformed: neither side can go on. */
  #breakRequest(): void {
    if (this.#fail()) this.#client.refuseHead(400, 'a chunk of its body is malformed');
  }

  /**
   * Gives up the upstream. If the client has seen nothing of a response, answers how far the request was; otherwise
   * cuts the client.
   */
  #fail(): Awaiting | undefined {
    const before = this.#state;
    this.#leave();
    this.#upstream.terminate();
    // The port may now have another service than the known one.
    if (before.kind === 'awaiting' && this.#upstream.served === 0)
      this.#target.traffic?.heard(this.#target.port, undefined);
    if (before.kind === 'awaiting' && before.heads.interims === 0) return before;
    this.#client.terminate();
    return undefined;
  }

  #headOf({ bytes, start, end }: Awaiting): RequestHead {
    return keepRequestHead(bytes, start, end, this.#client.context.limits.headerLinesMax);
  }

  cut(): void {
    if (this.#state.kind === 'over') return;
    const { traffic, port } = this.#target;
    const before = this.#fail();
    if (before === undefined) return;
    // A sandbox that has ended answers nothing any more; a client that has seen nothing of an answer can be told.
    if (traffic === null || this.#client.context.stopping) this.#client.terminate();
    else this.#client.refuse(sandboxNotFound({ sandboxId: traffic.sandboxId, port }), this.#headOf(before));
  }

  clientDrained(): void {
    this.#touch();
    this.#upstream.resume();
  }

  clientEnded(): void {
    if (!this.#client.body.done) return this.#client.terminate();
    // The kernel of a departed client resets the connection at the first byte. Without that byte, something that the
    // API creates during the grace period would have no owner, because nobody has heard of it.
    const isFirst = this.#state.kind === 'awaiting' && this.#minorVersion > 0;
    if (this.#target.traffic === null && isFirst) this.#toClient(processing, 0, processing.length, false);
    this.#client.watchHalfClosed();
  }

  clientGone(): void {
    this.#reusable = false;
    this.#upstream.sendBuffer.finish();
  }

  clientClosed(): void {
    if (this.#state.kind === 'over') return;
    this.#leave();
    this.#upstream.terminate();
  }

  #leave(isWhole = false): void {
    this.#state = over;
    this.#upstream.user = null;
    if (isWhole) this.#client.giveBack(this.#target.place);
    else this.#target.place.give();
  }

  #touch(): void {
    const { context, body } = this.#client;
    const { clock, limits } = context;
    const toApi = this.#target.traffic === null;
    this.#client.deadlineMs =
      clock.nowMs + (toApi && !body.done ? limits.apiBodyIdleTimeoutMs : limits.streamIdleTimeoutMs);
  }
}
