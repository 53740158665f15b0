/** What the edge uses of a client's socket; a stream of an HTTP/2 connection is one too. */
export type ByteSocket = {
  readonly remoteAddress: string;
  /** Bytes that the kernel (or what stands for it) has taken. */
  readonly bytesWritten: number;
  /**
   * What the connection that carries it has sent of bodies, its own and others'. Of a stream alone, which holds what it
   * has taken for as long as its client does not take that.
   */
  readonly bytesCarried?: number;
  /** How many bytes were taken; fewer than given when there is no room, negative when the socket is closed. */
  write(bytes: Uint8Array, start?: number, length?: number): number;
  pause(): void;
  resume(): void;
  /** Closes the sending side (FIN). */
  shutdown(): void;
  close(): void;
  /** Resets the connection (RST). */
  terminate(): void;
};

/**
 * The sending half of a socket. What the kernel does not take at once is kept in order and sent on `flush`.
 * It holds no more than its source had read when `write` answered false: the source must pause then.
 */
export class SendBuffer {
  readonly #socket: Pick<ByteSocket, 'write' | 'shutdown'>;
  #queue: Uint8Array[] = [];
  #finishing = false;

  constructor(socket: Pick<ByteSocket, 'write' | 'shutdown'>) {
    this.#socket = socket;
  }

  /** True when nothing waits to be sent. */
  get idle(): boolean {
    return this.#queue.length === 0;
  }

  /**
   * Sends `bytes[start, end)`. False: not all of it is with the kernel yet, pause the source until `flush` answers
   * true. `borrowed` bytes are copied if they have to wait; others must not change afterwards. A closed socket swallows
   * everything: its close event says so.
   */
  write(bytes: Uint8Array, start: number, end: number, borrowed: boolean): boolean {
    if (this.#queue.length > 0) {
      this.#keep(bytes, start, end, borrowed);
      return false;
    }
    const sent = this.#socket.write(bytes, start, end - start);
    if (sent < 0 || sent === end - start) return true;
    this.#keep(bytes, start + sent, end, borrowed);
    return false;
  }

  /** Sends what waits. True when nothing does any more. To be called on the socket's drain event. */
  flush(): boolean {
    while (this.#queue.length > 0) {
      const bytes = this.#queue[0] as Uint8Array;
      const sent = this.#socket.write(bytes);
      if (sent < 0) break;
      if (sent < bytes.length) {
        this.#queue[0] = bytes.subarray(sent);
        return false;
      }
      this.#queue.shift();
    }
    this.#queue = [];
    if (this.#finishing) this.#socket.shutdown();
    return true;
  }

  /** Closes the sending side (FIN) once everything is sent. Nothing may be written afterwards. */
  finish(): void {
    if (this.#finishing) return;
    this.#finishing = true;
    if (this.idle) this.#socket.shutdown();
  }

  #keep(bytes: Uint8Array, start: number, end: number, borrowed: boolean): void {
    if (start === end) return;
    const rest = bytes.subarray(start, end);
    this.#queue.push(borrowed ? Uint8Array.from(rest) : rest);
  }
}
