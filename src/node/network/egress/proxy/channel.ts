import type { Share } from './shares/turns.ts';

/** Gets the events of a channel. */
export type ChannelUser = {
  data(bytes: Buffer): void;
  /** The socket has taken all bytes that waited. */
  drained(): void;
  /** The peer will send nothing more. */
  ended(): void;
  /** The connection is gone; no other event follows. */
  closed(): void;
};

/** A connection, plain or encrypted. */
export type Channel = {
  /** From here on `user` gets the events; none was lost before. */
  use(user: ChannelUser): void;
  /** False: not everything is sent; the source of the bytes should pause until `drained`. */
  write(bytes: Uint8Array): boolean;
  /** Sends the bytes that wait, then the end of the stream. */
  end(): void;
  /** Breaks the connection: the peer sees a reset. */
  abort(): void;
  pause(): void;
  resume(): void;
  readonly isClosed: boolean;
};

/** Nobody listens yet: the channel keeps what arrives, which is little, because the socket is paused. */
const nobody: ChannelUser = { data() {}, drained() {}, ended() {}, closed() {} };

/**
 * A channel over one of the runtime's sockets. The socket's handlers are `channelHandlers`, with the channel as data.
 */
export class SocketChannel implements Channel {
  readonly socket: Bun.Socket<SocketChannel>;
  #user: ChannelUser = nobody;
  #unsent: Uint8Array[] = [];
  #kept: Buffer[] = [];
  #ending = false;
  #peerEnded = false;
  #paused = false;
  #held = false;
  isClosed = false;
  /** The socket now belongs to an encrypted channel; its events are not for this one. */
  isHandedOver = false;
  /** Called when the connection is gone, after its user. */
  whenGone: (() => void) | undefined;
  /** The share of time that pays for work on what arrives. */
  readonly share: Share | undefined;

  constructor(socket: Bun.Socket<SocketChannel>, share?: Share) {
    this.socket = socket;
    this.share = share;
  }

  use(user: ChannelUser): void {
    this.#user = user;
    for (const bytes of this.#kept.splice(0)) user.data(bytes);
    if (this.#peerEnded) user.ended();
    if (this.isClosed) user.closed();
  }

  /** Gives back bytes that were read but belong to the next user. */
  unread(bytes: Buffer): void {
    if (bytes.length > 0) this.#kept.unshift(bytes);
    this.#user = nobody;
  }

  write(bytes: Uint8Array): boolean {
    if (this.isClosed || bytes.length === 0) return true;
    if (this.#unsent.length > 0) {
      this.#unsent.push(bytes);
      return false;
    }
    const sent = this.socket.write(bytes);
    if (sent < 0 || sent === bytes.length) return true;
    this.#unsent.push(bytes.subarray(sent));
    return false;
  }

  end(): void {
    if (this.#ending || this.isClosed) return;
    this.#ending = true;
    if (this.#unsent.length === 0) this.#finish();
  }

  abort(): void {
    if (!this.isClosed) this.socket.terminate();
  }

  pause(): void {
    if (this.#paused || this.isClosed) return;
    this.#paused = true;
    if (!this.#held) this.socket.pause();
  }

  resume(): void {
    if (!this.#paused || this.isClosed) return;
    this.#paused = false;
    if (!this.#held) this.socket.resume();
  }

  /** Delivers nothing more until `letGo`, whether it is paused or not. */
  hold(): void {
    if (this.#held || this.isClosed) return;
    this.#held = true;
    if (!this.#paused) this.socket.pause();
  }

  letGo(): void {
    if (!this.#held || this.isClosed) return;
    this.#held = false;
    if (!this.#paused) this.socket.resume();
  }

  onData(bytes: Buffer): void {
    if (this.#user === nobody) this.#kept.push(bytes);
    else this.#user.data(bytes);
  }

  onDrain(): void {
    while (this.#unsent.length > 0) {
      const [bytes] = this.#unsent as [Uint8Array];
      const sent = this.socket.write(bytes);
      if (sent < 0) break;
      if (sent < bytes.length) {
        this.#unsent[0] = bytes.subarray(sent);
        return;
      }
      this.#unsent.shift();
    }
    this.#unsent = [];
    if (this.#ending) this.#finish();
    this.#user.drained();
  }

  onEnd(): void {
    this.#peerEnded = true;
    this.#user.ended();
    if (this.#ending && this.#unsent.length === 0) this.socket.end();
  }

  onClose(): void {
    this.isClosed = true;
    this.#unsent = [];
    this.#user.closed();
    this.whenGone?.();
  }

  #finish(): void {
    if (this.#peerEnded) this.socket.end();
    else this.socket.shutdown();
  }
}

/** The socket handlers of every channel. */
export const channelHandlers: Bun.SocketHandler<SocketChannel> = {
  data: (socket, bytes) => work(socket.data, () => socket.data.onData(bytes)),
  drain: socket => work(socket.data, () => socket.data.onDrain()),
  end: socket => work(socket.data, () => socket.data.onEnd()),
  close(socket) {
    if (!socket.data.isHandedOver) socket.data.onClose();
  },
  // After an error here nobody knows the state of the connection.
  error: socket => void socket.terminate(),
};

/** Handles an event on the account of the sandbox that owns the connection. */
function work(channel: SocketChannel, task: () => void): void {
  if (channel.isHandedOver) return;
  const startedAt = performance.now();
  task();
  channel.share?.charge(performance.now() - startedAt, channel);
}

/** Passes bytes both ways until both sides are done. If one connection breaks, so does the other. */
export function splice(a: Channel, b: Channel): void {
  const ended = new Set<Channel>();
  const passOn = (from: Channel, to: Channel) =>
    from.use({
      data(bytes) {
        if (!to.write(bytes)) from.pause();
      },
      drained: () => to.resume(),
      ended() {
        ended.add(from);
        to.end();
      },
      closed() {
        if (ended.size === 2) to.end();
        else to.abort();
      },
    });
  passOn(a, b);
  passOn(b, a);
}
