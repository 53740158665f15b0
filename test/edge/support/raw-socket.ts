/** One end of a TCP connection, driven byte by byte. */
export class RawSocket {
  /** Everything received so far, as Latin-1. */
  received = '';
  /** The other side closed its sending side. */
  ended = false;
  /** How the connection ended; undefined while it is open. */
  end: 'closed' | 'reset' | undefined;
  readonly #socket: Bun.Socket<unknown>;
  #waiting: (() => void)[] = [];
  #unsent: Buffer[] = [];

  constructor(socket: Bun.Socket<unknown>) {
    this.#socket = socket;
  }

  /** Connects to a port of the loopback. */
  static async connect(port: number, tls?: Bun.TLSOptions): Promise<RawSocket> {
    const { promise, resolve } = Promise.withResolvers<RawSocket>();
    let raw: RawSocket | undefined;
    await Bun.connect({
      hostname: '127.0.0.1',
      port,
      allowHalfOpen: true,
      ...(tls === undefined ? {} : { tls }),
      socket: {
        ...RawSocket.handlers(() => raw),
        open(socket) {
          raw = new RawSocket(socket);
          if (tls === undefined) resolve(raw);
        },
        handshake() {
          if (raw !== undefined) resolve(raw);
        },
      },
    });
    return promise;
  }

  static handlers<T>(of: (socket: Bun.Socket<T>) => RawSocket | undefined): Bun.SocketHandler<T> {
    return {
      data: (socket, bytes) => of(socket)?.changed(raw => (raw.received += bytes.toString('latin1'))),
      end: socket => of(socket)?.changed(raw => (raw.ended = true)),
      close: (socket, error) => of(socket)?.changed(raw => (raw.end = error === undefined ? 'closed' : 'reset')),
      drain: socket => of(socket)?.flush(),
      error() {},
    };
  }

  changed(change: (raw: RawSocket) => void): void {
    change(this);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  send(data: string | Buffer): void {
    this.#unsent.push(typeof data === 'string' ? Buffer.from(data, 'latin1') : data);
    this.flush();
  }

  flush(): void {
    for (let bytes = this.#unsent[0]; bytes !== undefined; bytes = this.#unsent[0]) {
      const sent = this.#socket.write(bytes);
      if (sent < 0) return;
      if (sent < bytes.length) {
        this.#unsent[0] = bytes.subarray(sent);
        return;
      }
      this.#unsent.shift();
    }
  }

  /** Bytes that the kernel hasn't taken. */
  get unsentBytes(): number {
    return this.#unsent.reduce((sum, bytes) => sum + bytes.length, 0);
  }

  /** Resolves once `holds` is true; fails if that can't happen any more. */
  async until(holds: (raw: RawSocket) => boolean): Promise<void> {
    while (!holds(this)) {
      if (this.end !== undefined)
        throw new Error(`the connection ended (${this.end}) after ${JSON.stringify(this.received.slice(-500))}`);
      await new Promise<void>(resolve => this.#waiting.push(resolve));
    }
  }

  /** Resolves once `text` was received, and forgets everything up to its end. Answers what was forgotten. */
  async expect(text: string): Promise<string> {
    await this.until(raw => raw.received.includes(text));
    return this.take(this.received.indexOf(text) + text.length);
  }

  take(length: number): string {
    const taken = this.received.slice(0, length);
    this.received = this.received.slice(length);
    return taken;
  }

  /** Resolves when the connection is over. */
  async over(): Promise<'closed' | 'reset'> {
    while (this.end === undefined) await new Promise<void>(resolve => this.#waiting.push(resolve));
    return this.end;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes the sending side. */
  halfClose(): void {
    this.#socket.shutdown();
  }

  close(): void {
    if (this.end === undefined) this.#socket.close();
  }

  reset(): void {
    if (this.end === undefined) this.#socket.terminate();
  }
}

/** A server on the loopback whose every byte the test itself sends. */
export type RawServer = Disposable & {
  readonly port: number;
  /** All connections so far. */
  readonly connections: RawSocket[];
  /** The next connection that nobody has accepted yet. */
  accept(): Promise<RawSocket>;
};

export function startRawServer(): RawServer {
  const connections: RawSocket[] = [];
  let accepted = 0;
  let arrived = Promise.withResolvers<void>();
  const listener = Bun.listen<RawSocket>({
    hostname: '127.0.0.1',
    port: 0,
    allowHalfOpen: true,
    socket: {
      ...RawSocket.handlers<RawSocket>(socket => socket.data),
      open(socket) {
        socket.data = new RawSocket(socket);
        connections.push(socket.data);
        arrived.resolve();
        arrived = Promise.withResolvers();
      },
    },
  });
  return {
    port: listener.port,
    connections,
    async accept() {
      for (;;) {
        const connection = connections[accepted];
        if (connection !== undefined) {
          accepted++;
          return connection;
        }
        await arrived.promise;
      }
    },
    [Symbol.dispose]: () => listener.stop(true),
  };
}
