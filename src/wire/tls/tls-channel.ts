import type { Channel, Listener } from '../channel.ts';
import { closeFile, streamPair } from '../files.ts';
import { Carried } from './carried.ts';
import type { FarEnds } from './far-ends.ts';
import { creditFrame, creditOf, frameKinds, tlsFrame, type TlsFrame, TlsFrameReader } from './tls-frame.ts';

/** Bytes that may wait to be sent. A reader that is further behind counts as gone. */
const waitingBytesMax = 256 << 20;
/** Connections that one TLS connection carries at most, each with a descriptor on both sides. */
const carriedMax = 10_000;

/** How often each side says that it is there, and after how many such times without a byte it counts as gone. */
const pingMs = 2_000;
const silentPingsMax = 4;

/** The part of the runtime's sockets that a channel needs. */
type Socket = { write(bytes: Uint8Array): number; terminate(): void };

/**
 * A channel over a TLS connection. A connected socket that is sent with a message stays here, and its bytes are
 * carried: the receiver gets a socket of its own machine in its place.
 */
export class TlsChannel implements Channel {
  readonly #socket: Socket;
  readonly #reader = new TlsFrameReader();
  readonly #carried = new Map<number, Carried>();
  readonly #pinging: Timer;
  readonly #farEnds: FarEnds | undefined;
  #silentPings = 0;
  #listener: Listener | undefined;
  #early: [string, number | undefined][] = [];
  #unsent: Uint8Array[] = [];
  #unsentBytes = 0;
  #lastStream = 0;
  #lastReceived = 0;
  #open = true;

  /** `farEnds`: where the far ends of connections are noted that the other side sends. */
  constructor(socket: Socket, farEnds?: FarEnds) {
    this.#socket = socket;
    this.#farEnds = farEnds;
    this.#pinging = setInterval(() => this.#ping(), pingMs);
  }

  listen(listener: Listener): void {
    this.#listener = listener;
    const early = this.#early;
    this.#early = [];
    for (const [text, file] of early) listener.message(text, file);
    if (!this.#open) listener.closed();
  }

  send(text: string, file?: number): void {
    if (!this.#open) return file === undefined ? undefined : closeFile(file);
    if (file === undefined) return this.#write(tlsFrame(frameKinds.message, 0, text));
    const stream = ++this.#lastStream;
    this.#write(tlsFrame(frameKinds.message, stream, text));
    if (this.#carried.size < carriedMax) return void this.#carry(stream, file);
    closeFile(file);
    this.#write(tlsFrame(frameKinds.reset, stream));
  }

  close(): void {
    if (!this.#open) return;
    this.#socket.terminate();
    this.closed();
  }

  /** Takes bytes from the socket. */
  received(bytes: Uint8Array): void {
    this.#silentPings = 0;
    const isSound = this.#reader.push(bytes, frame => {
      if (this.#open && !this.#take(frame)) this.close();
    });
    if (!isSound) this.close();
  }

  /** The socket takes bytes again. */
  drained(): void {
    const unsent = this.#unsent;
    this.#unsent = [];
    this.#unsentBytes = 0;
    for (const bytes of unsent) this.#write(bytes);
  }

  /** The socket has closed. */
  closed(): void {
    if (!this.#open) return;
    this.#open = false;
    clearInterval(this.#pinging);
    for (const [, file] of this.#early) if (file !== undefined) closeFile(file);
    for (const carried of [...this.#carried.values()]) carried.receiveReset();
    this.#unsent = [];
    this.#listener?.closed();
  }

  #ping(): void {
    // A network that is cut closes nothing by itself.
    if (++this.#silentPings > silentPingsMax) this.close();
    else this.#write(tlsFrame(frameKinds.ping, 0));
  }

  /** False: the other side breaks the rules. */
  #take({ kind, stream, body }: TlsFrame): boolean {
    if (kind === frameKinds.message) return this.#takeMessage(body.toString('utf8'), stream);
    if (kind === frameKinds.ping) return true;
    // What is over here may still be spoken of there.
    const carried = this.#carried.get(stream);
    if (!carried) return true;
    if (kind === frameKinds.data) return carried.receive(body);
    if (kind === frameKinds.credit) carried.receiveCredit(creditOf(body));
    else if (kind === frameKinds.end) carried.receiveEnd();
    else carried.receiveReset();
    return true;
  }

  #takeMessage(text: string, stream: number): boolean {
    let file: number | undefined;
    if (stream !== 0) {
      // A side that both sends and gets connections would use a number twice: only answers carry them.
      if (stream !== ++this.#lastReceived || this.#lastStream > 0 || this.#carried.size > carriedMax) return false;
      const [own, given] = streamPair();
      const carried = this.#carry(stream, own);
      this.#farEnds?.add(given, carried);
      file = given;
    }
    if (this.#listener) this.#listener.message(text, file);
    else this.#early.push([text, file]);
    return true;
  }

  #carry(stream: number, fd: number): Carried {
    const carried = new Carried(fd, {
      data: bytes => this.#write(tlsFrame(frameKinds.data, stream, bytes)),
      end: () => this.#write(tlsFrame(frameKinds.end, stream)),
      reset: () => this.#write(tlsFrame(frameKinds.reset, stream)),
      credit: bytes => this.#write(creditFrame(stream, bytes)),
      done: () => void this.#carried.delete(stream),
    });
    this.#carried.set(stream, carried);
    return carried;
  }

  #write(bytes: Uint8Array): void {
    if (!this.#open) return;
    const written = this.#unsent.length > 0 ? 0 : Math.max(this.#socket.write(bytes), 0);
    if (written === bytes.length) return;
    this.#unsent.push(bytes.subarray(written));
    this.#unsentBytes += bytes.length - written;
    if (this.#unsentBytes > waitingBytesMax) this.close();
  }
}
