import type { WaitingAccount } from './waiting-bytes.ts';

/** The part of a client's socket that the edge uses; an HTTP/2 stream has it too. */
export type ByteSocket = {
  readonly remoteAddress: string;
  /** Bytes that the kernel (or what stands for it) has taken. */
  readonly bytesWritten: number;
  /**
   * Body bytes that the carrying connection has sent, of all its streams. Only for a stream, which holds the bytes it
   * has taken until its client takes them.
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
 * The sending half of a socket. Keeps what the kernel does not take at once, in order, and sends it on `flush`. It
 * never holds more than its source had read when `write` answered false: then the source must pause.
 */
export class SendBuffer {
  readonly #socket: Pick<ByteSocket, 'write' | 'shutdown'>;
  #queue: Uint8Array[] = [];
  /** Bytes in the queue. */
  #waiting = 0;
  #account: WaitingAccount | null = null;
  #finishing = false;

  constructor(socket: Pick<ByteSocket, 'write' | 'shutdown'>) {
    this.#socket = socket;
  }

  /** What waits here counts there. */
  countIn(account: WaitingAccount): void {
    this.#account = account;
    account.set(this.#waiting);
  }

  /** True when nothing waits to be sent. */
  get idle(): boolean {
    return this.#queue.length === 0;
  }

  /**
   * Sends `bytes[start, end)`. False: the kernel hasn't taken all of it yet; pause the source until `flush` answers
   * true. `borrowed` bytes are copied if they have to wait; others must not change afterwards. A closed socket swallows
   * everything: its close event reports that.
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

  /** Sends what is waiting. True once nothing is waiting. Call it on the socket's drain event. */
  flush(): boolean {
    while (this.#queue.length > 0) {
      const bytes = this.#queue[0] as Uint8Array;
      const sent = this.#socket.write(bytes);
      if (sent < 0) break;
      this.#count(-sent);
      if (sent < bytes.length) {
        this.#queue[0] = bytes.subarray(sent);
        return false;
      }
      this.#queue.shift();
    }
    this.#queue = [];
    this.#count(-this.#waiting);
    if (this.#finishing) this.#socket.shutdown();
    return true;
  }

  /** Closes the sending side (FIN) once everything is sent. Nothing may be written after this call. */
  finish(): void {
    if (this.#finishing) return;
    this.#finishing = true;
    if (this.idle) this.#socket.shutdown();
  }

  #keep(bytes: Uint8Array, start: number, end: number, borrowed: boolean): void {
    if (start === end) return;
    const rest = bytes.subarray(start, end);
    this.#queue.push(borrowed ? Uint8Array.from(rest) : rest);
    this.#count(rest.length);
  }

  #count(change: number): void {
    this.#waiting += change;
    this.#account?.set(this.#waiting);
  }
}
