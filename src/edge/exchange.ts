import { type Answer, plainAnswer, sandboxAnswer } from './answer.ts';
import { type Client, type ClientUser, closesAfter, hasToken } from './client.ts';
import { composeRequest, type ForwardPlan } from './compose-request.ts';
import { composeResponse, needsRewrite } from './compose-response.ts';
import { BodyReader } from './http/body-reader.ts';
import { incomplete } from './http/fields.ts';
import { JoinedBytes } from './http/joined-bytes.ts';
import { headMayBeWhole } from './http/head-end.ts';
import type { RequestHead } from './http/request-head.ts';
import type { ResponseHead } from './http/response-head.ts';
import type { SandboxTraffic } from './sandbox-traffic.ts';
import type { Share } from '../base/share.ts';
import { Splice } from './splice.ts';
import type { Upstream, UpstreamUser } from './upstream.ts';

/** Where a request goes, besides the connection that takes it there. */
export type ExchangeTarget = {
  /** Null: the API. */
  readonly traffic: SandboxTraffic | null;
  /** What the request has taken of what all share; given back at its end. */
  readonly place: Share;
  readonly port: number;
  readonly plan: ForwardPlan;
};

/** How often the request was tried: a kept connection that turns out to be closed is replaced once. */
export type ServeAgain = {
  /** Take a new connection. */
  readonly fresh: boolean;
  /** Serves the same request again, over a new connection. */
  readonly again: (client: Client, head: RequestHead) => void;
};

/**
 * One request and its response on their way through. Bytes are passed on as they come; a side that can't take more
 * makes the other one wait.
 */
export class Exchange implements UpstreamUser, ClientUser {
  readonly #client: Client;
  readonly #target: ExchangeTarget;
  readonly #upstream: Upstream;
  /** Serves the request again over a new connection. */
  readonly #retry: (client: Client, head: RequestHead) => void;
  readonly #responseBody = new BodyReader();
  readonly #toHead: boolean;
  readonly #expects: boolean;
  readonly #minorVersion: number;
  /** The request's head until the response has begun: to send it again, or to see what kind of error it wants. */
  #head: { readonly bytes: Buffer; readonly start: number; readonly end: number } | null;
  readonly #replayable: boolean;
  #closeAfter: boolean;
  /** Bytes of the response that are not a whole head yet. */
  #partial: Buffer | null = null;
  #joined: JoinedBytes | null = null;
  #interims = 0;
  #headPassed = false;
  #responseDone = false;
  #reusable = true;
  #over = false;

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
    this.#head = { bytes: head.bytes, start: head.start, end: head.end };
    this.#replayable = upstream.served > 0 && head.framing.kind === 'none' && isSafeToRepeat(head);
    upstream.user = this;
  }

  /** Sends the head and what is there of the body. */
  begin(head: RequestHead): void {
    const client = this.#client;
    const { outlet } = this.#upstream;
    const { scratch } = client.context;
    let length = composeRequest(scratch, head, client, this.#target.plan);
    const { input, body } = client;
    let flowing = true;
    if (input === null || body.done) {
      flowing = outlet.write(scratch, 0, length, true);
    } else {
      const at = client.inputAt;
      const position = body.take(input, at, input.length);
      if (position < 0) return this.#breakRequest();
      client.use(position);
      if (position - at <= scratch.length - length) {
        // Head and body in one segment: small requests are the most frequent.
        length += input.copy(scratch, length, at, position);
        flowing = outlet.write(scratch, 0, length, true);
      } else {
        outlet.write(scratch, 0, length, true);
        flowing = outlet.write(input, at, position, false);
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
    if (this.#over || input === null || body.done) return false;
    const position = body.take(input, inputAt, input.length);
    if (position < 0) {
      this.#breakRequest();
      return true;
    }
    client.use(position);
    this.#touch();
    if (!this.#upstream.outlet.write(input, inputAt, position, false)) client.pause();
    else if (this.#responseDone && body.done) this.#complete();
    return false;
  }

  upstreamData(bytes: Buffer): void {
    this.#touch();
    if (this.#headPassed) this.#passBody(bytes, 0, 0);
    else this.#readHead(bytes);
  }

  #readHead(bytes: Buffer): void {
    const { responseHead: head, limits } = this.#client.context;
    const before = this.#partial;
    const input = before === null ? bytes : (this.#joined ??= new JoinedBytes()).join(before, bytes);
    this.#partial = input;
    if (before !== null && !headMayBeWhole(input, before.length) && input.length <= limits.responseHeadBytesMax) return;
    this.#partial = null;
    for (let at = 0; at < input.length; ) {
      const end = head.parse(input, at, input.length);
      if (end === incomplete && input.length - at <= limits.responseHeadBytesMax) {
        this.#partial = input.subarray(at);
        return;
      }
      if (end === incomplete || end - at > limits.responseHeadBytesMax) return this.#refuseResponse('its head is too large');
      if (end < incomplete) return this.#refuseResponse(head.fault);
      if (head.status >= 200) return this.#passHead(head, input);
      if (head.status === 101) return this.#switchProtocols(head, input);
      if (++this.#interims > limits.interimResponsesMax) return this.#refuseResponse('there were too many interim responses');
      this.#passInterim(head, input);
      at = end;
    }
  }

  #passInterim(head: ResponseHead, input: Buffer): void {
    // A client that didn't ask could take a 100 for the answer; HTTP/1.0 knows no interim responses.
    if (this.#minorVersion === 0 || (head.status === 100 && !this.#expects)) return;
    this.#toClient(input, head.start, head.end, false);
  }

  #passHead(head: ResponseHead, input: Buffer): void {
    const framing = head.framing(this.#toHead);
    if (framing === undefined) return this.#refuseResponse('where its body ends is ambiguous');
    this.#headPassed = true;
    this.#head = null;
    this.#responseBody.reset(framing.kind, framing.length);
    if (framing.kind === 'close' || this.#client.context.stopping) this.#closeAfter = true;
    this.#reusable = this.#reusable && this.#keepsAlive(head);
    if (!needsRewrite(head, this.#closeAfter)) return this.#passBody(input, head.start, head.end);
    const { scratch } = this.#client.context;
    const length = composeResponse(scratch, head, this.#closeAfter);
    const bodyEnd = Math.min(input.length, head.end + scratch.length - length);
    const position = this.#responseBody.take(input, head.end, bodyEnd);
    if (position < 0) return this.#truncated();
    input.copy(scratch, length, head.end, position);
    this.#toClient(scratch, 0, length + position - head.end, true);
    if (position === bodyEnd && bodyEnd < input.length) this.#passBody(input, position, position);
    else this.#afterBody(position < input.length);
  }

  /** Passes on `bytes` from `start`; what is the body's begins at `bodyStart`. */
  #passBody(bytes: Buffer, start: number, bodyStart: number): void {
    const position = this.#responseBody.take(bytes, bodyStart, bytes.length);
    if (position < 0) return this.#truncated();
    this.#toClient(bytes, start, position, false);
    this.#afterBody(position < bytes.length);
  }

  #afterBody(excess: boolean): void {
    // Bytes after a response belong to no request: they are dropped with their connection.
    if (excess) this.#reusable = false;
    if (this.#responseBody.done) this.#endResponse();
  }

  #endResponse(): void {
    if (this.#over || this.#responseDone) return;
    this.#responseDone = true;
    if (this.#client.body.done && this.#upstream.outlet.idle) this.#complete();
    else if (this.#upstream.ended || this.#upstream.closed) this.#abandonRequest();
  }

  #toClient(bytes: Buffer, start: number, end: number, borrowed: boolean): void {
    if (start < end && !this.#client.outlet.write(bytes, start, end, borrowed)) this.#upstream.pause();
  }

  /** Whether the server keeps the connection; notes for how long, where it says so. */
  #keepsAlive(head: ResponseHead): boolean {
    const { fields } = head;
    const seconds = /timeout=(\d{1,6})/i.exec(fields.text('keep-alive') ?? '')?.[1];
    // One second less than promised: the server counts from a little earlier than we do.
    if (seconds !== undefined) this.#upstream.keepMs = Math.max(0, Number(seconds) - 1) * 1000;
    return head.minorVersion === 1 && this.#minorVersion === 1 && !hasToken(fields.list('connection'), 'close');
  }

  #switchProtocols(head: ResponseHead, input: Buffer): void {
    if (!this.#target.plan.upgrade || !this.#client.body.done) return this.#refuseResponse('it switched protocols unasked');
    this.#over = true;
    const splice = new Splice(this.#client, this.#upstream, this.#target.place);
    this.#upstream.user = splice;
    splice.upstreamData(input.subarray(head.start));
    this.#client.beginUse(splice);
    if (this.#client.ended) splice.clientEnded();
  }

  /** Both directions are over: the connection may serve another request. */
  #complete(): void {
    this.#leave();
    const upstream = this.#upstream;
    // What a server takes trailers for differs; were it another request, its answer would come to whoever is next.
    const hadTrailers = this.#client.body.hadTrailers || this.#responseBody.hadTrailers;
    if (this.#reusable && !hadTrailers && !upstream.ended && !upstream.closed) {
      // It may have been made to wait for this client's last bytes.
      upstream.resume();
      upstream.home.give(upstream, this.#client.context.clock.nowMs);
    } else {
      upstream.close();
    }
    this.#client.endUse(this.#closeAfter);
  }

  /** The response is over, and nobody takes the rest of the request. */
  #abandonRequest(): void {
    this.#leave();
    this.#upstream.terminate();
    this.#client.skipRequest(this.#closeAfter);
  }

  upstreamDrained(): void {
    this.#client.resume();
    if (this.#responseDone && this.#client.body.done) this.#complete();
  }

  upstreamEnded(): void {
    if (this.#over) return;
    if (this.#responseDone) this.#abandonRequest();
    else if (this.#headPassed && this.#responseBody.kind === 'close' && this.#sandboxGoesOn()) this.#endResponse();
    else this.#truncated();
  }

  /** A body that ends with its connection also ends with its server: only that of a sandbox that still runs is whole. */
  #sandboxGoesOn(): boolean {
    const { traffic } = this.#target;
    if (traffic === null) return true;
    const route = this.#client.context.directory.find(traffic.sandboxId);
    return route instanceof Promise || (route?.state === 'running' && route.executionId === traffic.executionId);
  }

  upstreamClosed(error: Error | undefined): void {
    if (this.#over) return;
    if (error === undefined || this.#responseDone) this.upstreamEnded();
    else this.#truncated();
  }

  /** The upstream is gone before the response's end. */
  #truncated(): void {
    this.#leave();
    this.#upstream.terminate();
    const head = this.#head;
    if (head === null || this.#interims > 0) return this.#client.terminate();
    const { requestHead } = this.#client.context;
    requestHead.parse(head.bytes, head.start, head.end);
    if (this.#replayable && this.#partial === null) this.#retry(this.#client, requestHead);
    else this.#client.refuse(this.#answer('closed the connection without an answer'), requestHead);
  }

  /** The upstream does not speak HTTP, or means to confuse somebody. */
  #refuseResponse(reason: string): void {
    const { log, requestHead } = this.#client.context;
    log.debug('invalid response', { sandboxId: this.#target.traffic?.sandboxId, port: this.#target.port, reason });
    this.#leave();
    this.#upstream.terminate();
    const head = this.#head;
    if (head === null || this.#interims > 0) return this.#client.terminate();
    requestHead.parse(head.bytes, head.start, head.end);
    this.#client.refuse(this.#answer(`did not answer in valid HTTP/1.1: ${reason}`), requestHead);
  }

  /** The request's body is malformed: neither side can go on. */
  #breakRequest(): void {
    this.#leave();
    this.#upstream.terminate();
    if (this.#head === null || this.#interims > 0) this.#client.terminate();
    else this.#client.refuseHead(400, 'a chunk of its body is malformed');
  }

  #answer(what: string): Answer {
    const { traffic, port } = this.#target;
    // Not 502: clients read that as the end of the sandbox.
    if (traffic === null) return plainAnswer(503, `The API ${what}`);
    return sandboxAnswer(503, `The service on port ${port} ${what}`, { sandboxId: traffic.sandboxId, port }, { port });
  }

  cut(): void {
    if (this.#over) return;
    this.#leave();
    this.#client.terminate();
  }

  clientDrained(): void {
    this.#upstream.resume();
  }

  clientEnded(): void {
    if (this.#client.body.done) this.#client.watchHalfClosed();
    else this.#client.terminate();
  }

  clientGone(): void {
    this.#reusable = false;
    this.#upstream.outlet.finish();
  }

  clientClosed(): void {
    if (this.#over) return;
    this.#leave();
    this.#upstream.terminate();
  }

  #leave(): void {
    this.#over = true;
    this.#upstream.user = null;
    this.#target.place.give();
  }

  #touch(): void {
    const { context, body } = this.#client;
    const { clock, limits } = context;
    const toApi = this.#target.traffic === null;
    this.#client.deadlineMs = clock.nowMs + (toApi && !body.done ? limits.apiBodyIdleTimeoutMs : limits.streamIdleTimeoutMs);
  }
}

/** Methods that do the same when a request arrives twice (RFC 9110 9.2.2). */
export function isSafeToRepeat(head: RequestHead): boolean {
  return ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'].some(method => head.methodIs(method));
}
