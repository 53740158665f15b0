import { assert } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { FarEnd } from '../directory/directory.ts';
import { type ByteSocket, SendBuffer } from '../send-buffer.ts';
import { beginsHttp2 } from './http2/first-frame.ts';
import type { Protocol } from './known-protocols.ts';

/** Who uses an upstream connection at the moment, and hears what happens on it. */
export type UpstreamUser = {
  upstreamData(bytes: Buffer): void;
  /** What waited to be sent to the upstream is sent. */
  upstreamDrained(): void;
  /** The upstream closed its sending side. */
  upstreamEnded(): void;
  /** The connection is gone; `error` where it did not end in order. */
  upstreamClosed(error: Error | undefined): void;
  /** The sandbox was killed or paused: no answer that has begun may look as if it had ended in order. */
  cut(): void;
};

/** Where a connection belongs. */
export type UpstreamHome = {
  /** It is open from here on. */
  add(upstream: Upstream): void;
  /** Keeps the connection for the next request. */
  give(upstream: Upstream, nowMs: number): void;
  /** The connection is closed. */
  forget(upstream: Upstream): void;
};

/** A connection to a sandbox's port or to the API. */
export class Upstream {
  readonly home: UpstreamHome;
  user: UpstreamUser | null = null;
  closed = false;
  /** The upstream closed its sending side, so that it can't serve another request. */
  ended = false;
  /** Requests that it served before the current one. */
  served = 0;
  /** Since when it is idle, on the edge's clock. */
  idleSinceMs = 0;
  /** For how long the server said that it keeps an idle connection. */
  keepMs = Number.POSITIVE_INFINITY;
  /** What a server said before anybody listened, where it may speak first; null: it may not. */
  early: Buffer[] | null = null;
  /** Called with the first of it. */
  onEarly: (() => void) | null = null;
  /** It spoke first, as a server of HTTP/2 does. */
  greetedInHttp2 = false;
  #paused = false;
  #abandoned = false;
  #socket: ByteSocket | null = null;
  #sendBuffer: SendBuffer | null = null;

  /** Its server speaks HTTP/2, whose frames say where a message ends. */
  readonly isHttp2: boolean;
  readonly #farEnd: FarEnd | undefined;

  /** `farEnd`: of a connection that another machine carries. */
  constructor(
    home: UpstreamHome,
    { farEnd, isHttp2 = false }: { farEnd?: FarEnd | undefined; isHttp2?: boolean } = {},
  ) {
    this.home = home;
    this.isHttp2 = isHttp2;
    this.#farEnd = farEnd;
  }

  /** Its server broke off, or the network to it did, which a socket that stands for it can't say. */
  get wasReset(): boolean {
    return this.#farEnd?.wasReset() ?? false;
  }

  get protocol(): Protocol {
    return this.isHttp2 ? 'h2' : 'http/1.1';
  }

  get socket(): ByteSocket {
    assert(this.#socket !== null, 'an upstream is used before it is open');
    return this.#socket;
  }

  get sendBuffer(): SendBuffer {
    assert(this.#sendBuffer !== null, 'an upstream is used before it is open');
    return this.#sendBuffer;
  }

  opened(socket: ByteSocket): void {
    this.#socket = socket;
    this.#sendBuffer = new SendBuffer(socket);
    if (this.#abandoned) this.terminate();
  }

  /** Stops reading, so that the server waits as the client does. */
  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.socket.pause();
  }

  resume(): void {
    if (!this.#paused || this.closed) return;
    this.#paused = false;
    this.socket.resume();
  }

  /** Closes in order. */
  close(): void {
    if (!this.closed) this.socket.close();
  }

  /** The connection is gone: its user hears of it. */
  wasClosed(error: Error | undefined): void {
    this.closed = true;
    this.home.forget(this);
    const { user } = this;
    this.user = null;
    user?.upstreamClosed(error ?? (this.wasReset ? new Error('the connection was reset') : undefined));
  }

  /** Resets the connection (RST): the other side sees an abort. */
  terminate(): void {
    if (this.closed) return;
    this.#farEnd?.reset();
    this.socket.terminate();
  }

  /** Resets a connection that nobody is going to use: at once, or when it opens. */
  abandon(): void {
    this.#abandoned = true;
    if (this.#socket !== null) this.terminate();
  }
}

/** The socket handlers of every upstream connection. */
export function upstreamHandlers(log: Log) {
  return {
    open(socket) {
      socket.data.opened(socket);
    },
    data(socket, bytes) {
      const upstream = socket.data;
      // A server that speaks without being asked answers a request that was never sent: don't trust it with the next.
      if (upstream.user !== null) return upstream.user.upstreamData(bytes);
      upstream.greetedInHttp2 ||= beginsHttp2(bytes);
      if (upstream.early === null) return upstream.terminate();
      upstream.early.push(bytes);
      upstream.pause();
      upstream.onEarly?.();
    },
    drain(socket) {
      const upstream = socket.data;
      if (!upstream.sendBuffer.idle && upstream.sendBuffer.flush()) upstream.user?.upstreamDrained();
    },
    end(socket) {
      const upstream = socket.data;
      if (upstream.wasReset) return upstream.terminate();
      upstream.ended = true;
      if (upstream.user !== null) upstream.user.upstreamEnded();
      else if (upstream.early === null) socket.close();
    },
    close(socket, error) {
      socket.data.wasClosed(error);
    },
    // Trouble of the connection comes with its close event; what comes here was thrown by a handler.
    error(socket, error) {
      log.error('upstream handler failed', { error: error.stack });
      socket.terminate();
    },
  } satisfies Bun.SocketHandler<Upstream>;
}
