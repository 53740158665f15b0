import { closeFile } from '../files.ts';
import type { Backlog } from './backlog.ts';
import { dataBytesMax } from './tls-frame.ts';

/** Bytes of one connection that may be under way in one direction: more than a local network holds. */
const windowBytes = 256 << 10;
/** Taken bytes that justify a credit frame. */
const creditStepBytes = windowBytes / 4;
/** How far the other side may be ahead while too much waits here. */
const narrowWindowBytes = windowBytes / 4;
/** How long a local side may take to read what a sender left before it went away. */
const leftMs = 10_000;
/** Small waiting pieces are joined up to this size: a piece by itself costs more than it holds. */
const pieceBytes = 16 << 10;

/** Messages of a carried connection to the other side. */
type CarriedSink = {
  data(bytes: Uint8Array): void;
  end(): void;
  reset(): void;
  credit(bytes: number): void;
  /** The carrier has enough to send: the connection holds the rest until `goOn`. */
  isCrowded(): boolean;
  waits(): void;
  /** Both directions are over, or the connection was reset. */
  done(): void;
};

type Local = Bun.Socket<undefined>;

/**
 * One connection within a TLS connection: a local socket here, its counterpart on the other side. Each side ends when
 * its sender has ended. If the carrier ends, that is a reset, so that it can't be mistaken for an orderly end.
 */
export class Carried {
  readonly #sink: CarriedSink;
  readonly #backlog: Backlog;
  #socket: Local | undefined;
  /** Bytes that the other side still accepts. */
  #credit = windowBytes;
  /** Bytes read here while the other side, or the carrier, takes no more. */
  #held: Buffer[] = [];
  #heldEnd = false;
  /** Bytes from the other side that the local socket has not taken yet. */
  #unsent: Buffer[] = [];
  #unsentBytes = 0;
  /** Free bytes in the last of these pieces. */
  #room = 0;
  #isEndWanted = false;
  #taken = 0;
  #isSent = false;
  #isReceived = false;
  /** The local socket has closed; or its counterpart has. */
  #isGoneHere = false;
  #isGoneThere = false;
  #isOver = false;
  #wasReset = false;
  /** The other end of the local socket belongs to this process, which closes it by itself. */
  readonly #isOwn: boolean;
  #leaving: Timer | undefined;

  /** `fd`: a connected stream socket, which this object owns from now on. `isOwn`: this process has its other end. */
  constructor(fd: number, isOwn: boolean, backlog: Backlog, sink: CarriedSink) {
    this.#isOwn = isOwn;
    this.#backlog = backlog;
    this.#sink = sink;
    const options = {
      fd,
      allowHalfOpen: true,
      socket: {
        open: (socket: Local) => this.#opened(socket),
        data: (_: Local, bytes: Buffer) => this.#read(bytes),
        drain: () => this.#flush(),
        end: () => this.#ended(),
        close: (_: Local, error?: Error) => this.#closed(error),
        error: (socket: Local) => void socket.terminate(),
      },
    };
    // The runtime accepts a connected descriptor where the types know only an address.
    Bun.connect(options as unknown as Bun.UnixSocketOptions<undefined>).catch(() => {
      closeFile(fd);
      this.#fail();
    });
  }

  /** Takes bytes from the other side, which are valid until this returns. False: more than it may send. */
  receive(bytes: Buffer): boolean {
    if (this.#isOver || this.#isGoneHere) return true;
    if (this.#unsentBytes + bytes.length > windowBytes || this.#isEndWanted) return false;
    const written = this.#socket && this.#unsent.length === 0 ? Math.max(this.#socket.write(bytes), 0) : 0;
    this.#taken += written;
    if (written < bytes.length) this.#keep(bytes.subarray(written));
    this.#giveCredit();
    return true;
  }

  /** Appends bytes to those that wait. Copies them, as the caller reuses its buffer. */
  #keep(bytes: Buffer): void {
    const last = this.#unsent.at(-1);
    if (last && bytes.length <= this.#room) {
      const joined = Buffer.from(last.buffer, last.byteOffset, last.length + bytes.length);
      joined.set(bytes, last.length);
      this.#unsent[this.#unsent.length - 1] = joined;
      this.#room -= bytes.length;
    } else {
      const piece = Buffer.allocUnsafeSlow(Math.max(pieceBytes, bytes.length));
      piece.set(bytes);
      this.#unsent.push(piece.subarray(0, bytes.length));
      this.#room = piece.length - bytes.length;
    }
    this.#unsentBytes += bytes.length;
    this.#backlog.add(this, bytes.length);
  }

  /** Drops what the local side has not taken. */
  #dropUnsent(): void {
    this.#backlog.remove(this, this.#unsentBytes, true);
    this.#unsent = [];
    this.#unsentBytes = 0;
    this.#room = 0;
  }

  /** The other side will send nothing more. */
  receiveEnd(): void {
    this.#isEndWanted = true;
    this.#flush();
  }

  /** The other side broke off, or left after it had sent everything, or the carrier ended. */
  receiveReset(): void {
    if (this.#isOver) return;
    // What it sent before its end is still on its way into the local socket.
    if (this.#isEndWanted) return this.#leave();
    this.#wasReset = true;
    this.#finish();
    this.#socket?.terminate();
  }

  /**
   * Nobody is left to read what the local side sends. A service of a sandbox might never close, and it would hold a
   * place that all sandboxes of a node share.
   */
  #leave(): void {
    this.#isGoneThere = true;
    if (this.#isOwn) return;
    if (!this.#isReceived) return void (this.#leaving ??= setTimeout(() => this.reset(), leftMs));
    this.#finish();
    this.#socket?.end();
  }

  /** The other side broke off, which the local socket, having no reset, shows as an end. */
  wasReset(): boolean {
    return this.#wasReset;
  }

  /** Breaks off for the local side, whose socket can't express that. */
  reset(): void {
    if (this.#isOver) return;
    this.#fail();
    this.#socket?.terminate();
  }

  /** Gives up because too much waits in this process. The local side sees the other one break off. */
  giveUp(): void {
    this.#wasReset = true;
    this.reset();
  }

  /** The other side accepts that many bytes more. */
  receiveCredit(bytes: number): void {
    this.#credit += bytes;
    this.goOn();
  }

  /** Sends what had to wait, as far as it may. */
  goOn(): void {
    if (this.#isOver) return;
    for (let first = this.#held[0]; first; first = this.#held[0]) {
      const rest = this.#send(first);
      if (rest.length > 0) return void (this.#held[0] = rest);
      this.#held.shift();
    }
    if (this.#heldEnd) this.#sendEnd();
    if (this.#isGoneHere) return this.#fail();
    if (this.#heldEnd || this.#credit === 0) return;
    if (this.#sink.isCrowded()) this.#sink.waits();
    else this.#socket?.resume();
  }

  /** Stops reading until `goOn`. */
  pause(): void {
    this.#socket?.pause();
  }

  #opened(socket: Local): void {
    this.#socket = socket;
    if (this.#isOver) return void socket.terminate();
    this.#flush();
  }

  #read(bytes: Buffer): void {
    if (this.#isOver || this.#isGoneThere) return;
    const rest = this.#held.length === 0 ? this.#send(bytes) : bytes;
    // The runtime reuses its buffer.
    if (rest.length > 0) this.#held.push(Buffer.from(rest));
    if (this.#credit === 0 || this.#held.length > 0) this.#socket?.pause();
  }

  /** Sends what may go now, and answers the rest. */
  #send(bytes: Buffer): Buffer {
    let rest = bytes;
    while (rest.length > 0 && this.#credit > 0) {
      if (this.#sink.isCrowded()) {
        this.#sink.waits();
        break;
      }
      const piece = rest.subarray(0, Math.min(rest.length, this.#credit, dataBytesMax));
      this.#credit -= piece.length;
      this.#sink.data(piece);
      rest = rest.subarray(piece.length);
    }
    return rest;
  }

  #ended(): void {
    if (this.#isSent) return;
    if (this.#held.length > 0) this.#heldEnd = true;
    else this.#sendEnd();
  }

  #sendEnd(): void {
    if (this.#isSent || this.#isOver) return;
    this.#isSent = true;
    if (!this.#isGoneThere) this.#sink.end();
    this.#settle();
  }

  #flush(): void {
    const socket = this.#socket;
    if (!socket || this.#isOver || this.#isGoneHere) return;
    for (let first = this.#unsent[0]; first; first = this.#unsent[0]) {
      const written = Math.max(socket.write(first), 0);
      this.#unsentBytes -= written;
      this.#backlog.remove(this, written, this.#unsentBytes === 0);
      this.#taken += written;
      if (written < first.length) {
        this.#unsent[0] = first.subarray(written);
        break;
      }
      this.#unsent.shift();
    }
    if (this.#unsent.length === 0) this.#room = 0;
    this.#giveCredit();
    if (!this.#isEndWanted || this.#unsent.length > 0 || this.#isReceived) return;
    this.#isReceived = true;
    // Not closed before the local side has read everything: the runtime gives up a socket whose other side is closed.
    socket.shutdown();
    this.#settle();
    if (this.#isGoneThere && !this.#isOver) this.#leave();
  }

  #giveCredit(): void {
    const isNarrow = this.#backlog.isHigh;
    const given = this.#taken - (isNarrow ? windowBytes - narrowWindowBytes : 0);
    if (given < (isNarrow ? narrowWindowBytes / 2 : creditStepBytes) || this.#isEndWanted || this.#isOver) return;
    this.#taken -= given;
    this.#sink.credit(given);
  }

  /** The local side is gone. What it sent before is still delivered. */
  #closed(error: Error | undefined): void {
    if (this.#isOver) return;
    this.#isGoneHere = true;
    this.#dropUnsent();
    if (error) return this.#fail();
    this.#ended();
    if (!this.#isOver && !this.#heldEnd) this.#fail();
  }

  #fail(): void {
    if (this.#isOver) return;
    this.#finish();
    if (!this.#isGoneThere) this.#sink.reset();
  }

  /** Ends both directions. */
  #finish(): void {
    this.#isOver = true;
    clearTimeout(this.#leaving);
    this.#dropUnsent();
    this.#sink.done();
  }

  #settle(): void {
    if (!this.#isSent || !this.#isReceived || this.#isOver) return;
    this.#finish();
    this.#socket?.end();
  }
}
