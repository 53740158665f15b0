import { splice, type Channel } from '../channel.ts';
import { Gathered } from '../gathered.ts';
import { type BodyKind, BodyReader } from '../../../../../http1/body-reader.ts';
import { composeRequest, readRequest, type RelayedRequest } from './request.ts';
import { readResponse } from './response.ts';

/** How long a client may take to send one request's head, from its first octet on. */
const headTimeoutMs = 10_000;
/** How long a connection may stay open between two requests. */
const idleTimeoutMs = 300_000;
/** Octets that wait while a request is being answered: what a client has sent ahead of its turn. */
const aheadBytesMax = 64 << 10;
/** Most interim responses (RFC 9110 15.2) to one request; a server that sends more is cut off. */
const interimMax = 16;

/** A client's connection, and what was decided about it. */
type RelayOptions = {
  /** The host that was decided about: requests may name no other. */
  host: string;
  /** The port that the client connected to. */
  port: number;
  /** The port that URLs of the scheme leave out. */
  defaultPort: number;
  client: Channel;
  /** Connects to the server. Called once, with the first request that may pass. */
  connect(): Promise<Channel>;
  /** The server is the platform's own edge. */
  toPlatform: boolean;
  /** The headers that currently replace those of requests. */
  headers(): Record<string, string>;
  /** Called when a request was not passed on. The connection is then cut. */
  onRefused(reason: string): void;
};

/** How long a client may take to close its half after the relay has closed its own. */
const lingerMs = 5_000;

type Exchange = {
  request: RelayedRequest;
  requestBody: BodyReader;
  /** The server is connected and has the request's head. */
  sent: boolean;
  responseBody: BodyReader | undefined;
  /** How many interim responses it has had so far. */
  interim: number;
};

/**
 * Passes HTTP/1 requests on, one after the other: the next one is read when the last one is answered, so nobody ever
 * has to guess which answer belongs to which request, and every request is inspected. Inspection ends with a
 * WebSocket, once the server has agreed to it.
 */
export class Relay {
  readonly #options: RelayOptions;
  #server: Channel | undefined;
  #exchange: Exchange | undefined;
  /** Bytes from the client that are not parsed yet. */
  readonly #input = new Gathered();
  /** How many of them were already searched for the end of a head. */
  #inputSearched = 0;
  /** Bytes from the server that are not parsed yet. */
  readonly #output = new Gathered();
  #outputSearched = 0;
  #isOver = false;
  #clientEnded = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  /** Begins; what the client has sent so far is still in its channel. */
  start(): void {
    this.#wait(headTimeoutMs);
    this.#options.client.use({
      data: bytes => this.#fromClient(bytes),
      drained: () => this.#server?.resume(),
      ended: () => this.#clientDone(),
      closed: () => this.#clientGone(),
    });
  }

  #clientGone(): void {
    clearTimeout(this.#timer);
    this.#stop();
  }

  #fromClient(bytes: Buffer): void {
    if (this.#isOver) return;
    const rest = this.#exchange?.sent ? this.#passBody(this.#exchange, bytes) : bytes;
    if (rest.length === 0) return;
    if (this.#input.length === 0 && !this.#exchange) this.#wait(headTimeoutMs);
    this.#input.append(rest);
    if (!this.#exchange) this.#nextRequest();
    else if (this.#input.length > aheadBytesMax) this.#options.client.pause();
  }

  /** Passes on the bytes that belong to the request's body, and answers the rest. */
  #passBody(exchange: Exchange, bytes: Buffer): Buffer {
    if (exchange.requestBody.done) return bytes;
    const taken = exchange.requestBody.take(bytes, 0, bytes.length);
    if (taken < 0) return this.#refuse('a malformed body');
    if (this.#server?.write(bytes.subarray(0, taken)) === false) this.#options.client.pause();
    return bytes.subarray(taken);
  }

  #nextRequest(): void {
    const request = readRequest(this.#input.bytes, this.#inputSearched);
    if (request === 'incomplete') return void (this.#inputSearched = this.#input.length);
    this.#inputSearched = 0;
    if ('refused' in request) return void this.#refuse(request.refused);
    const { host, port, defaultPort } = this.#options;
    if (request.host !== host) return void this.#refuse(`a request for another host, ${request.host ?? 'or none'}`);
    if ((request.port ?? defaultPort) !== port) return void this.#refuse('a request for another port');
    clearTimeout(this.#timer);
    this.#input.take(request.length);
    this.#exchange = {
      request,
      requestBody: bodyReader(request.body),
      sent: false,
      responseBody: undefined,
      interim: 0,
    };
    this.#options.client.pause();
    this.#send(this.#exchange).catch(() => this.#refuse('a request that can’t be written'));
  }

  async #send(exchange: Exchange): Promise<void> {
    const { host, port, defaultPort, toPlatform, headers, client } = this.#options;
    const server = this.#server ?? (await this.#connect());
    if (!server || this.#isOver) return;
    const rule = headers();
    // A TRACE answer repeats the request, and a rule's headers are often secret (RFC 9110 9.3.8).
    if (exchange.request.method === 'TRACE' && Object.keys(rule).length > 0)
      return void this.#refuse('a TRACE, which would tell what the rule sets');
    server.write(
      composeRequest(exchange.request, port === defaultPort ? host : `${host}:${port}`, rule, { toPlatform }),
    );
    exchange.sent = true;
    client.resume();
    const rest = this.#input.takeAll();
    if (rest.length > 0) this.#fromClient(rest);
  }

  async #connect(): Promise<Channel | undefined> {
    try {
      const server = await this.#options.connect();
      if (this.#isOver) {
        server.abort();
        return undefined;
      }
      this.#server = server;
      server.use({
        data: bytes => this.#fromServer(bytes),
        drained: () => this.#options.client.resume(),
        ended: () => this.#serverDone(),
        closed: () => this.#stop(),
      });
      return server;
    } catch {
      this.#stop(); // `connect` has reported why it failed
      return undefined;
    }
  }

  #fromServer(bytes: Buffer): void {
    if (this.#isOver) return;
    const exchange = this.#exchange;
    if (!exchange) return this.#stop(); // a response without a request
    const body = exchange.responseBody;
    if (!body) {
      this.#output.append(bytes);
      return this.#readResponses(exchange);
    }
    const taken = body.take(bytes, 0, bytes.length);
    if (taken < 0) return this.#stop();
    this.#toClient(bytes.subarray(0, taken));
    if (body.done) this.#answered(exchange, bytes.subarray(taken));
  }

  /** Reads the heads that have come: interim ones, and then the one that the body follows. */
  #readResponses(exchange: Exchange): void {
    while (!exchange.responseBody && this.#output.length > 0) {
      const response = readResponse(this.#output.bytes, exchange.request.method, this.#outputSearched);
      if (response === 'incomplete') return void (this.#outputSearched = this.#output.length);
      this.#outputSearched = 0;
      if (response === 'invalid' || (response.status < 200 && ++exchange.interim > interimMax)) return this.#stop();
      this.#toClient(this.#output.take(response.length));
      if (response.status === 101)
        return exchange.request.upgrade && exchange.requestBody.done
          ? this.#goOnRaw(this.#output.takeAll())
          : this.#stop();
      if (response.status >= 200) exchange.responseBody = bodyReader(response.body);
    }
    const rest = this.#output.takeAll();
    if (exchange.responseBody?.done) this.#answered(exchange, rest);
    else if (rest.length > 0) this.#fromServer(rest);
  }

  /** The response is complete. If the request is not, or more than the response came, nothing else can follow. */
  #answered(exchange: Exchange, rest: Buffer): void {
    if (rest.length > 0 || !exchange.requestBody.done) return this.#close();
    this.#exchange = undefined;
    if (this.#clientEnded) return this.#close();
    this.#wait(this.#input.length > 0 ? headTimeoutMs : idleTimeoutMs);
    this.#options.client.resume();
    if (this.#input.length > 0) this.#nextRequest();
  }

  #goOnRaw(fromServer: Buffer): void {
    const { client } = this.#options;
    const server = this.#server;
    if (!server) return;
    this.#isOver = true;
    client.write(fromServer);
    server.write(this.#input.takeAll());
    client.resume();
    splice(client, server);
  }

  #toClient(bytes: Buffer): void {
    if (!this.#options.client.write(bytes)) this.#server?.pause();
  }

  #clientDone(): void {
    this.#clientEnded = true;
    // A client that closes its half still waits for the answer to its last request.
    if (!this.#exchange) this.#close();
    else if (!this.#exchange.requestBody.done) this.#stop();
  }

  #serverDone(): void {
    if (this.#isOver) return;
    if (this.#exchange && this.#exchange.responseBody?.kind !== 'close') return this.#stop(); // cut short
    this.#close();
  }

  #refuse(reason: string): Buffer {
    this.#options.onRefused(reason);
    this.#stop();
    return Buffer.alloc(0);
  }

  /** Closes in order, so that what was sent arrives. */
  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    const { client } = this.#options;
    client.end();
    this.#server?.abort();
    this.#timer = setTimeout(() => client.abort(), lingerMs);
  }

  #stop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#options.client.abort();
    this.#server?.abort();
  }

  #wait(timeoutMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#stop(), timeoutMs);
  }
}

function bodyReader({ kind, length }: { kind: BodyKind; length: number }): BodyReader {
  const reader = new BodyReader();
  reader.reset(kind, length);
  return reader;
}
