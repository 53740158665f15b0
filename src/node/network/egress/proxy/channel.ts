import type { Share } from './shares/turns.ts';

/** What a channel reports to its user. */
export type ChannelUser = {
  data(bytes: Buffer): void;
  /** What waited to be sent has been taken. */
  drained(): void;
  /** The peer will send nothing more. */
  ended(): void;
  /** The connection is gone; nothing else follows. */
  closed(): void;
};

/** A connection, plain or encrypted. */
export type Channel = {
  /** From here on `user` hears what happens; nothing was lost before. */
  use(user: ChannelUser): void;
  /** False: not all is sent; what the bytes came from should pause until `drained`. */
  write(bytes: Uint8Array): boolean;
  /** Sends what waits and then says that nothing follows. */
  end(): void;
  /** Breaks the connection: the peer sees a reset. */
  abort(): void;
  pause(): void;
  resume(): void;
  readonly isClosed: boolean;
};

/** Nobody listens yet: what arrives is kept, and little of it, since the socket is paused. */
const nobody: ChannelUser = { data() {}, drained() {}, ended() {}, closed() {} };

/** A channel over one of the runtime's sockets. Their handlers are `channelHandlers`, with the channel as data. */
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
  /** The socket belongs to an encrypted channel now; what it still reports is not for us. */
  isHandedOver = false;
  /** Called when the connection is gone, after its user. */
  whenGone: (() => void) | undefined;
  /** Whose time it takes to work on what arrives. */
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

  /** Gives back what was read but belongs to the next user. */
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

  /** Brings nothing more until `letGo`, whether it is paused or not. */
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
  // After a failure of ours nobody would know what the connection has come to.
  error: socket => void socket.terminate(),
};

/** Does what an event asks for, on the account of the sandbox that the connection belongs to. */
function work(channel: SocketChannel, task: () => void): void {
  if (channel.isHandedOver) return;
  const startedAt = performance.now();
  task();
  channel.share?.charge(performance.now() - startedAt, channel);
}

/** Passes bytes both ways until both sides are done. A broken connection breaks the other. */
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
