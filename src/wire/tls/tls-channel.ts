import { closeFile, streamPair } from '../files.ts';
import { Backlog } from './backlog.ts';
import { Carried } from './carried.ts';
import type { FarEnds } from './far-ends.ts';
import { type ByteSocket, StreamChannel, type WaitingBytes } from '../stream-channel.ts';
import { creditFrame, creditOf, frameKinds, tlsFrame, type TlsFrame, TlsFrameReader } from './tls-frame.ts';

/**
 * The most connections that one TLS connection carries. Each takes a descriptor on the side that sends it, and two on
 * the receiving side, which gets a local socket in its place.
 */
const carriedMax = 10_000;

/**
 * How often each side says that it is there, and the number of such intervals without a byte after which it counts as
 * gone.
 */
const pingMs = 2_000;
const silentPingsMax = 4;

type TlsChannelOptions = {
  /** Records the far ends of connections that the other side sends. */
  farEnds?: FarEnds | undefined;
  /** The backlog that this channel shares with others. */
  backlog?: Backlog;
  /** The longest message to receive, in bytes. */
  messageBytesMax?: number;
  /** See `StreamChannel`. */
  waiting?: WaitingBytes;
};

/**
 * A channel over a TLS connection. A connected socket that is sent with a message stays here, and its bytes are
 * carried: the receiver gets a local socket in its place.
 */
export class TlsChannel extends StreamChannel {
  readonly #reader: TlsFrameReader;
  readonly #carried = new Map<number, Carried>();
  readonly #pinging: Timer;
  readonly #farEnds: FarEnds | undefined;
  readonly #backlog: Backlog;
  /** Those that send nothing until there is room, in the order in which they began to wait. */
  readonly #waiting = new Set<Carried>();
  #silentPings = 0;
  #lastStream = 0;
  #lastReceived = 0;

  constructor(socket: ByteSocket, { farEnds, backlog, messageBytesMax, waiting }: TlsChannelOptions = {}) {
    super(socket, waiting);
    this.#reader = new TlsFrameReader(messageBytesMax);
    this.#farEnds = farEnds;
    this.#backlog = backlog ?? farEnds?.backlog ?? new Backlog();
    this.#pinging = setInterval(() => this.#ping(), pingMs);
  }

  override send(text: string, file?: number): void {
    if (!this.isOpen) return file === undefined ? undefined : closeFile(file);
    if (file === undefined) return this.write(tlsFrame(frameKinds.message, 0, text));
    const stream = ++this.#lastStream;
    this.write(tlsFrame(frameKinds.message, stream, text));
    if (this.#carried.size < carriedMax) return void this.#carry(stream, file, false);
    closeFile(file);
    this.write(tlsFrame(frameKinds.reset, stream));
  }

  override received(bytes: Uint8Array): void {
    this.#silentPings = 0;
    const isSound = this.#reader.push(bytes, frame => {
      if (this.isOpen && !this.#take(frame)) this.close();
    });
    if (!isSound) this.close();
  }

  protected override release(): void {
    clearInterval(this.#pinging);
    for (const carried of [...this.#carried.values()]) carried.receiveReset();
  }

  protected override crowded(): void {
    for (const carried of this.#carried.values()) {
      carried.pause();
      this.#waiting.add(carried);
    }
  }

  protected override hasRoom(): void {
    for (const carried of this.#waiting) {
      if (this.isCrowded) return;
      this.#waiting.delete(carried);
      carried.goOn();
    }
  }

  #ping(): void {
    // A cut network closes nothing by itself.
    if (++this.#silentPings > silentPingsMax) this.close();
    else this.write(tlsFrame(frameKinds.ping, 0));
  }

  /** Handles a frame. False: the other side breaks the rules. */
  #take({ kind, stream, body }: TlsFrame): boolean {
    if (kind === frameKinds.message) return this.#takeMessage(body.toString('utf8'), stream);
    if (kind === frameKinds.ping) return true;
    // The other side may still send frames of a connection that is over here.
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
      // Two sides that both send connections would use the same numbers: only answers carry connections.
      if (stream !== ++this.#lastReceived || this.#lastStream > 0 || this.#carried.size > carriedMax) return false;
      const [own, given] = streamPair();
      const carried = this.#carry(stream, own, true);
      this.#farEnds?.add(given, carried);
      file = given;
    }
    this.deliver(text, file);
    return true;
  }

  #carry(stream: number, fd: number, isOwn: boolean): Carried {
    const carried: Carried = new Carried(fd, isOwn, this.#backlog, {
      data: bytes => this.write(tlsFrame(frameKinds.data, stream, bytes)),
      end: () => this.write(tlsFrame(frameKinds.end, stream)),
      reset: () => this.write(tlsFrame(frameKinds.reset, stream)),
      credit: bytes => this.write(creditFrame(stream, bytes)),
      isCrowded: () => this.isCrowded,
      waits: () => void this.#waiting.add(carried),
      done: () => {
        this.#carried.delete(stream);
        this.#waiting.delete(carried);
      },
    });
    this.#carried.set(stream, carried);
    return carried;
  }
}
