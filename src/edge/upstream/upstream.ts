import { assert } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { FarEnd } from '../directory/directory.ts';
import { type ByteSocket, SendBuffer } from '../send-buffer.ts';
import { beginsHttp2 } from './http2/first-frame.ts';
import type { WaitingAccount, WaitingBytes } from '../waiting-bytes.ts';
import type { Protocol } from './known-protocols.ts';

/** The current user of an upstream connection, which hears what happens on it. */
export type UpstreamUser = {
  upstreamData(bytes: Buffer): void;
  /** Everything that waited to be sent to the upstream was sent. */
  upstreamDrained(): void;
  /** The upstream closed its sending side. */
  upstreamEnded(): void;
  /** The connection is gone; `error` if it did not end in order. */
  upstreamClosed(error: Error | undefined): void;
  /** The sandbox was killed or paused: an answer that has begun must not look as if it had ended in order. */
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
  /** The upstream closed its sending side, so it can't serve another request. */
  ended = false;
  /** Requests that it served before the current one. */
  served = 0;
  /** Since when it has been idle, on the edge's clock. */
  idleSinceMs = 0;
  /** How long the server says that it keeps an idle connection. */
  keepMs = Number.POSITIVE_INFINITY;
  /** What a server said before anybody listened, if it may speak first; null: it may not. */
  early: Buffer[] | null = null;
  /** Called with the first of these bytes. */
  onEarly: (() => void) | null = null;
  /** The server spoke first, as an HTTP/2 server does. */
  greetedInHttp2 = false;
  #paused = false;
  #abandoned = false;
  #socket: ByteSocket | null = null;
  #sendBuffer: SendBuffer | null = null;
  #account: WaitingAccount | null = null;

  /** The server speaks HTTP/2, whose frames tell where a message ends. */
  readonly isHttp2: boolean;
  readonly #farEnd: FarEnd | undefined;

  /** `farEnd`: given for a connection that another machine carries. */
  constructor(
    home: UpstreamHome,
    { farEnd, isHttp2 = false }: { farEnd?: FarEnd | undefined; isHttp2?: boolean } = {},
  ) {
    this.home = home;
    this.isHttp2 = isHttp2;
    this.#farEnd = farEnd;
  }

  /** The server or the network to it broke off, which the local socket that stands for it can't tell. */
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

  /** What waits for the server counts for this group. */
  countIn(waiting: WaitingBytes, group: string): void {
    this.#account ??= waiting.account(group, () => this.terminate());
    this.#account.moveTo(group);
    this.sendBuffer.countIn(this.#account);
  }

  /** Stops reading, so that the server waits as long as the client does. */
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
    this.#account?.close();
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

  /** Resets a connection that nobody will use: at once, or when it opens. */
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
      // A server that speaks unasked answers a request that was never sent: don't trust it with the next one.
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
    // Connection errors arrive with the close event; errors that arrive here were thrown by a handler.
    error(socket, error) {
      log.error('upstream handler failed', { error: error.stack });
      socket.terminate();
    },
  } satisfies Bun.SocketHandler<Upstream>;
}
