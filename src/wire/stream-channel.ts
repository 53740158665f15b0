import type { Channel, Listener } from './channel.ts';
import { closeFile } from './files.ts';

/** Bytes that may wait to be sent. A reader that falls further behind counts as gone. */
const waitingBytesMax = 256 << 20;
/** What each waiting piece takes besides its bytes: many small pieces add up when a reader takes none. */
const pieceBytes = 128;
/** At the first size, senders that can wait should; at the second, they may go on. */
const crowdedBytes = 8 << 20;
const roomBytes = crowdedBytes / 2;

/** The part of the runtime's sockets that a channel needs. */
export type ByteSocket = { write(bytes: Uint8Array): number; terminate(): void };

/** Counts the bytes that wait to be sent to one reader, on all of its channels. */
export class WaitingBytes {
  readonly #max: number;
  #bytes = 0;

  constructor(max = waitingBytesMax) {
    this.#max = max;
  }

  /** Adds `bytes`, which may be negative. False: the reader is too far behind. */
  add(bytes: number): boolean {
    this.#bytes += bytes;
    return this.#bytes <= this.#max;
  }
}

/** A channel over a connected stream. Holds what waits to be sent, and what came before there was a listener. */
export abstract class StreamChannel implements Channel {
  readonly #socket: ByteSocket;
  #listener: Listener | undefined;
  #early: [string, number | undefined][] = [];
  /** Bytes that the kernel has not taken yet, in order. */
  #unsent: Uint8Array[] = [];
  #unsentBytes = 0;
  #isCrowded = false;
  #open = true;
  readonly #waiting: WaitingBytes;

  /** `waiting`: shared by the same reader's channels. */
  constructor(socket: ByteSocket, waiting = new WaitingBytes()) {
    this.#socket = socket;
    this.#waiting = waiting;
  }

  abstract send(text: string, file?: number): void;

  /** Takes bytes from the socket. */
  abstract received(bytes: Uint8Array): void;

  /** Releases what this kind of channel holds. Called once, when it closes. */
  protected abstract release(): void;

  protected get isOpen(): boolean {
    return this.#open;
  }

  /** More bytes wait than the socket will take soon: true from `crowded` to `hasRoom`. */
  protected get isCrowded(): boolean {
    return this.#isCrowded;
  }

  /** Called when many bytes wait. */
  protected crowded(): void {}

  /** Called when few bytes wait again. */
  protected hasRoom(): void {}

  listen(listener: Listener): void {
    this.#listener = listener;
    const early = this.#early;
    this.#early = [];
    for (const [text, file] of early) listener.message(text, file);
    if (!this.#open) listener.closed();
  }

  close(): void {
    if (!this.#open) return;
    this.#socket.terminate();
    this.closed();
  }

  /** Called when the socket takes bytes again. */
  drained(): void {
    const unsent = this.#unsent;
    this.#forgetUnsent();
    for (const bytes of unsent) this.write(bytes);
    if (!this.#isCrowded || this.#unsentBytes > roomBytes) return;
    this.#isCrowded = false;
    this.hasRoom();
  }

  /** Called when the socket has closed. */
  closed(): void {
    if (!this.#open) return;
    this.#open = false;
    this.release();
    for (const [, file] of this.#early) if (file !== undefined) closeFile(file);
    this.#forgetUnsent();
    this.#listener?.closed();
  }

  #forgetUnsent(): void {
    this.#waiting.add(-this.#unsentBytes - this.#unsent.length * pieceBytes);
    this.#unsent = [];
    this.#unsentBytes = 0;
  }

  /** Passes a message to the listener. */
  protected deliver(text: string, file: number | undefined): void {
    if (this.#listener) this.#listener.message(text, file);
    else this.#early.push([text, file]);
  }

  protected write(bytes: Uint8Array): void {
    if (!this.#open) return;
    const written = this.#unsent.length > 0 ? 0 : Math.max(this.#socket.write(bytes), 0);
    if (written === bytes.length) return;
    // A view and no copy: what counts is the length of the rest.
    this.#unsent.push(bytes.subarray(written));
    const more = bytes.length - written;
    this.#unsentBytes += more;
    if (!this.#waiting.add(more + pieceBytes)) return this.close();
    if (this.#isCrowded || this.#unsentBytes <= crowdedBytes) return;
    this.#isCrowded = true;
    this.crowded();
  }
}
