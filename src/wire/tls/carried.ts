import { closeFile } from '../files.ts';
import type { Backlog } from './backlog.ts';
import { dataBytesMax } from './tls-frame.ts';

/** Bytes of one connection that may be on their way in one direction: more than a local network holds. */
const windowBytes = 256 << 10;
/** So many taken bytes are worth a frame that says so. */
const creditStepBytes = windowBytes / 4;
/** What the other side may be ahead where too much waits here. */
const narrowWindowBytes = windowBytes / 4;
/** How long a local side may take to read what a sender has left that is gone. */
const leftMs = 10_000;
/** Small pieces that wait are put together in as many bytes: each by itself costs more than it holds. */
const pieceBytes = 16 << 10;

/** What a carried connection says to the other side. */
type CarriedSink = {
  data(bytes: Uint8Array): void;
  end(): void;
  reset(): void;
  credit(bytes: number): void;
  /** The carrier has enough to send. Then this waits with more, until `goOn`. */
  isCrowded(): boolean;
  waits(): void;
  /** Both directions are over, or it was reset. */
  done(): void;
};

type Local = Bun.Socket<undefined>;

/**
 * One connection that a TLS connection carries: a local socket here, its counterpart on the other side. Each side ends
 * when its sender ended; an end of the carrier is a reset, so that nothing looks as if it had come to its end in order.
 */
export class Carried {
  readonly #sink: CarriedSink;
  readonly #backlog: Backlog;
  #socket: Local | undefined;
  /** Bytes that the other side still takes. */
  #credit = windowBytes;
  /** Read here while the other side takes no more, or the carrier. */
  #held: Buffer[] = [];
  #heldEnd = false;
  /** Came from there and the local socket did not take it yet. */
  #unsent: Buffer[] = [];
  #unsentBytes = 0;
  /** Bytes that the last piece of it has room for. */
  #room = 0;
  #isEndWanted = false;
  #taken = 0;
  #isSent = false;
  #isReceived = false;
  /** The local socket has closed; its counterpart has. */
  #isGoneHere = false;
  #isGoneThere = false;
  #isOver = false;
  #wasReset = false;
  /** Who has the other end of the local socket is of this process, and closes it by himself. */
  readonly #isOwn: boolean;
  #leaving: Timer | undefined;

  /** `fd`: a connected stream socket, this object's from now on. `isOwn`: its other end is given to this process. */
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
    // The runtime takes a connected descriptor where the types know only an address.
    Bun.connect(options as unknown as Bun.UnixSocketOptions<undefined>).catch(() => {
      closeFile(fd);
      this.#fail();
    });
  }

  /** Bytes from the other side, which hold until this is back. False: more than it may send. */
  receive(bytes: Buffer): boolean {
    if (this.#isOver || this.#isGoneHere) return true;
    if (this.#unsentBytes + bytes.length > windowBytes || this.#isEndWanted) return false;
    const written = this.#socket && this.#unsent.length === 0 ? Math.max(this.#socket.write(bytes), 0) : 0;
    this.#taken += written;
    if (written < bytes.length) this.#keep(bytes.subarray(written));
    this.#giveCredit();
    return true;
  }

  /** Puts bytes behind what waits. Whoever calls uses them again. */
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

  /** Gives up what the local side has not taken. */
  #dropUnsent(): void {
    this.#backlog.remove(this, this.#unsentBytes, true);
    this.#unsent = [];
    this.#unsentBytes = 0;
    this.#room = 0;
  }

  /** The other side sends nothing more. */
  receiveEnd(): void {
    this.#isEndWanted = true;
    this.#flush();
  }

  /** The other side broke off, or is gone after it had sent all that it would, or the carrier ended. */
  receiveReset(): void {
    if (this.#isOver) return;
    // What it had sent before its end is still on its way into the local socket.
    if (this.#isEndWanted) return this.#leave();
    this.#wasReset = true;
    this.#finish();
    this.#socket?.terminate();
  }

  /**
   * Nobody is there any more who would read what the local side says. A service of a sandbox may never close, and its
   * place is one of those that all sandboxes of a node share.
   */
  #leave(): void {
    this.#isGoneThere = true;
    if (this.#isOwn) return;
    if (!this.#isReceived) return void (this.#leaving ??= setTimeout(() => this.reset(), leftMs));
    this.#finish();
    this.#socket?.end();
  }

  /** The other side has broken off: the local socket, which knows no reset, has ended for that. */
  wasReset(): boolean {
    return this.#wasReset;
  }

  /** The local side breaks off, which its socket could not say. */
  reset(): void {
    if (this.#isOver) return;
    this.#fail();
    this.#socket?.terminate();
  }

  /** Too much waits in this process. To the local side it is as if the other one had broken off. */
  giveUp(): void {
    this.#wasReset = true;
    this.reset();
  }

  /** The other side takes so many bytes more. */
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

  /** Reads nothing until it is told to go on. */
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
    // The runtime uses its buffer again.
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
    // Not closed before the local side has read all: the runtime gives up a socket whose other side is closed.
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

  /** The local side is gone. What it had sent before that is brought to its end first. */
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

  /** Nothing more goes in either direction. */
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
