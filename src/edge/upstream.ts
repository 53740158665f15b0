import { assert } from '../base/error.ts';
import type { Log } from '../base/log.ts';
import { Outlet } from './outlet.ts';

/** Who uses an upstream connection at the moment, and hears what happens on it. */
export type UpstreamUser = {
  upstreamData(bytes: Buffer): void;
  /** What waited to be sent to the upstream is sent. */
  upstreamDrained(): void;
  /** The upstream closed its sending side. */
  upstreamEnded(): void;
  /** The connection is gone; `error` where it did not end in order. */
  upstreamClosed(error: Error | undefined): void;
  /** The sandbox was killed or paused: nothing may look as if it had ended in order. */
  cut(): void;
};

/** Where a connection belongs. */
export type UpstreamHome = {
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
  #paused = false;
  #socket: Bun.Socket<Upstream> | null = null;
  #outlet: Outlet | null = null;

  constructor(home: UpstreamHome) {
    this.home = home;
  }

  get socket(): Bun.Socket<Upstream> {
    assert(this.#socket !== null, 'an upstream is used before it is open');
    return this.#socket;
  }

  get outlet(): Outlet {
    assert(this.#outlet !== null, 'an upstream is used before it is open');
    return this.#outlet;
  }

  opened(socket: Bun.Socket<Upstream>): void {
    this.#socket = socket;
    this.#outlet = new Outlet(socket);
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

  /** Resets the connection (RST): the other side sees an abort. */
  terminate(): void {
    if (!this.closed) this.socket.terminate();
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
      if (upstream.user === null) upstream.terminate();
      else upstream.user.upstreamData(bytes);
    },
    drain(socket) {
      const upstream = socket.data;
      if (!upstream.outlet.idle && upstream.outlet.flush()) upstream.user?.upstreamDrained();
    },
    end(socket) {
      const upstream = socket.data;
      upstream.ended = true;
      if (upstream.user === null) socket.close();
      else upstream.user.upstreamEnded();
    },
    close(socket, error) {
      const upstream = socket.data;
      upstream.closed = true;
      upstream.home.forget(upstream);
      const { user } = upstream;
      upstream.user = null;
      user?.upstreamClosed(error);
    },
    // Trouble of the connection comes with its close event; what comes here was thrown by a handler.
    error(socket, error) {
      log.error('upstream handler failed', { error: error.stack });
      socket.terminate();
    },
  } satisfies Bun.SocketHandler<Upstream>;
}
