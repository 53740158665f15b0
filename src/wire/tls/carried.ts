import { closeFile } from '../files.ts';
import { dataBytesMax } from './tls-frame.ts';

/** Bytes of one connection that may be on their way in one direction: more than a local network holds. */
const windowBytes = 256 << 10;
/** So many taken bytes are worth a frame that says so. */
const creditStepBytes = windowBytes / 4;

/** What a carried connection says to the other side. */
type CarriedSink = {
  data(bytes: Uint8Array): void;
  end(): void;
  reset(): void;
  credit(bytes: number): void;
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
  #socket: Local | undefined;
  /** Bytes that the other side still takes. */
  #credit = windowBytes;
  /** Read here while the other side takes no more. */
  #held: Buffer[] = [];
  #heldEnd = false;
  /** Came from there and the local socket did not take it yet. */
  #unsent: Buffer[] = [];
  #unsentBytes = 0;
  #isEndWanted = false;
  #taken = 0;
  #isSent = false;
  #isReceived = false;
  /** The local socket has closed; its counterpart has. */
  #isGoneHere = false;
  #isGoneThere = false;
  #isOver = false;
  #wasReset = false;

  /** `fd`: a connected stream socket, this object's from now on. */
  constructor(fd: number, sink: CarriedSink) {
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
    // Whoever calls uses the bytes again.
    if (written < bytes.length) this.#unsent.push(Buffer.from(bytes.subarray(written)));
    this.#unsentBytes += bytes.length - written;
    this.#giveCredit();
    return true;
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
    if (this.#isEndWanted) return void (this.#isGoneThere = true);
    this.#isOver = true;
    this.#wasReset = true;
    this.#socket?.terminate();
    this.#sink.done();
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

  /** The other side takes so many bytes more. */
  receiveCredit(bytes: number): void {
    this.#credit += bytes;
    const held = this.#held;
    this.#held = [];
    for (const part of held) this.#send(part);
    if (this.#held.length > 0) return;
    if (this.#heldEnd) this.#sendEnd();
    if (this.#isGoneHere) this.#fail();
    else if (!this.#heldEnd) this.#socket?.resume();
  }

  #opened(socket: Local): void {
    this.#socket = socket;
    if (this.#isOver) return void socket.terminate();
    this.#flush();
  }

  #read(bytes: Buffer): void {
    if (this.#isOver || this.#isGoneThere) return;
    // The runtime uses its buffer again, and the rest may have to wait.
    this.#send(this.#credit >= bytes.length ? bytes : Buffer.from(bytes));
    if (this.#credit === 0) this.#socket?.pause();
  }

  #send(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0 && this.#credit > 0 && this.#held.length === 0) {
      const piece = rest.subarray(0, Math.min(rest.length, this.#credit, dataBytesMax));
      this.#credit -= piece.length;
      this.#sink.data(piece);
      rest = rest.subarray(piece.length);
    }
    if (rest.length > 0) this.#held.push(rest);
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
      this.#taken += written;
      if (written < first.length) {
        this.#unsent[0] = first.subarray(written);
        break;
      }
      this.#unsent.shift();
    }
    this.#giveCredit();
    if (!this.#isEndWanted || this.#unsent.length > 0 || this.#isReceived) return;
    this.#isReceived = true;
    // Not closed before the local side has read all: the runtime gives up a socket whose other side is closed.
    socket.shutdown();
    this.#settle();
  }

  #giveCredit(): void {
    if (this.#taken < creditStepBytes || this.#isEndWanted) return;
    this.#sink.credit(this.#taken);
    this.#taken = 0;
  }

  /** The local side is gone. What it had sent before that is brought to its end first. */
  #closed(error: Error | undefined): void {
    if (this.#isOver) return;
    this.#isGoneHere = true;
    if (error) return this.#fail();
    this.#ended();
    if (!this.#isOver && !this.#heldEnd) this.#fail();
  }

  #fail(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (!this.#isGoneThere) this.#sink.reset();
    this.#sink.done();
  }

  #settle(): void {
    if (!this.#isSent || !this.#isReceived || this.#isOver) return;
    this.#isOver = true;
    this.#socket?.end();
    this.#sink.done();
  }
}
