import type { Share } from '../../base/concurrency/share.ts';
import type { Client, ClientUser } from '../connection/client.ts';
import { closeWhenSent } from '../upstream/close-when-sent.ts';
import type { Upstream, UpstreamUser } from '../upstream/upstream.ts';
import {
  FrameReader,
  closeCode,
  closeFrame,
  frameHeadBytesMax,
  opcode,
  shortFrame,
  writeFrameHead,
} from '../../base/websocket-frames.ts';

/**
 * A TCP connection into a sandbox, as a WebSocket: the contents of binary messages are its bytes, however they are cut.
 * If the client has asked for it, an empty text message in either direction says that no more bytes follow, as a FIN
 * does in TCP. A side that can't take more makes the other one wait.
 */
export class Tunnel implements UpstreamUser, ClientUser {
  readonly #client: Client;
  readonly #upstream: Upstream;
  readonly #place: Share;
  readonly #halfCloses: boolean;
  readonly #frames: FrameReader;
  /** The input being read; the contents of its frames are collected in `[start, end)`, in front of the rest. */
  #reading: { readonly input: Buffer; start: number; end: number } | null = null;
  #clientFinished = false;
  #upstreamFinished = false;
  #over = false;

  /** `place`: its share of what all requests share, returned when it ends. */
  constructor(client: Client, upstream: Upstream, place: Share, halfCloses: boolean) {
    this.#client = client;
    this.#upstream = upstream;
    this.#place = place;
    this.#halfCloses = halfCloses;
    this.#frames = new FrameReader({
      data: (bytes, isText) => this.#gather(bytes, isText),
      messageEnd: (isText, length) => this.#messageEnd(isText, length),
      control: (code, payload) => this.#control(code, payload),
    });
  }

  /** Listens to the server, and reads what it has already said. */
  begin(): void {
    const early = this.#upstream.early ?? [];
    this.#upstream.user = this;
    this.#upstream.early = null;
    for (const bytes of early) this.upstreamData(bytes);
    if (this.#client.sendBuffer.idle) this.#upstream.resume();
    if (this.#upstream.ended) this.upstreamEnded();
  }

  clientInput(): boolean {
    const { input, inputAt } = this.#client;
    if (input === null || this.#over) return false;
    this.#touch();
    this.#client.use(input.length);
    // Used bytes may be overwritten once this returns, and not before.
    this.#reading = { input, start: inputAt, end: inputAt };
    const isWebSocket = this.#frames.take(input, inputAt);
    this.#sendGathered();
    this.#reading = null;
    if (!isWebSocket) this.#end(closeCode.protocolError);
    return false;
  }

  /** Thousands of small messages would each be a call, or each wait for a server that does not read. */
  #gather(bytes: Buffer, isText: boolean): void {
    if (this.#over || this.#reading === null) return;
    if (isText || this.#clientFinished) return this.#end(closeCode.unsupported);
    const { input, start, end } = this.#reading;
    const at = bytes.byteOffset - input.byteOffset;
    if (start === end) this.#reading.start = at;
    else input.copyWithin(end, at, at + bytes.length);
    this.#reading.end = (start === end ? at : end) + bytes.length;
  }

  #sendGathered(): void {
    if (this.#reading === null) return;
    const { input, start, end } = this.#reading;
    this.#reading.start = end;
    if (start < end && !this.#over && !this.#upstream.sendBuffer.write(input, start, end, false)) this.#client.pause();
  }

  #messageEnd(isText: boolean, length: number): void {
    if (this.#over || !isText || length > 0) return;
    if (!this.#halfCloses) return this.#end(closeCode.unsupported);
    this.#clientFinished = true;
    this.#sendGathered();
    this.#upstream.sendBuffer.finish();
    if (this.#upstreamFinished) this.#end(closeCode.normal);
  }

  #control(code: number, payload: Buffer): void {
    if (this.#over) return;
    if (code === opcode.close) return this.#end(closeCode.normal);
    // A client that does not read what was sent gets no answers either: they must not pile up.
    if (code === opcode.ping && this.#client.sendBuffer.idle) this.#send(shortFrame(opcode.pong, payload));
  }

  upstreamData(bytes: Buffer): void {
    this.#touch();
    const { scratch } = this.#client.context;
    const headLength = writeFrameHead(scratch, opcode.binary, bytes.length);
    const { sendBuffer } = this.#client;
    let flows: boolean;
    if (bytes.length <= scratch.length - frameHeadBytesMax) {
      bytes.copy(scratch, headLength);
      flows = sendBuffer.write(scratch, 0, headLength + bytes.length, true);
    } else {
      sendBuffer.write(scratch, 0, headLength, true);
      flows = sendBuffer.write(bytes, 0, bytes.length, false);
    }
    if (!flows) this.#upstream.pause();
  }

  upstreamDrained(): void {
    this.#client.resume();
  }

  clientDrained(): void {
    this.#upstream.resume();
  }

  /** A WebSocket closes with its frames: a client that closes the connection without them is gone. */
  clientEnded(): void {
    this.#client.terminate();
  }

  clientGone(): void {
    this.#client.terminate();
  }

  upstreamEnded(): void {
    if (this.#over) return;
    this.#upstreamFinished = true;
    if (!this.#halfCloses || this.#clientFinished) return this.#end(closeCode.normal);
    this.#send(shortFrame(opcode.text));
  }

  upstreamClosed(error: Error | undefined): void {
    if (this.#over) return;
    // Once both sides have sent their last byte, the runtime reports only the close.
    if (error === undefined && (this.#upstreamFinished || this.#clientFinished)) return this.#end(closeCode.normal);
    this.#leave();
    this.#client.terminate();
  }

  clientClosed(): void {
    if (this.#over) return;
    this.#leave();
    this.#upstream.terminate();
  }

  cut(): void {
    if (this.#over) return;
    this.#leave();
    this.#client.terminate();
  }

  /** Says why, and closes both sides; bytes that the upstream has not taken yet are still sent to it. */
  #end(code: number): void {
    if (this.#over) return;
    this.#sendGathered();
    this.#send(closeFrame(code));
    this.#leave(true);
    if (code === closeCode.normal) closeWhenSent(this.#upstream, this.#client.context.limits.lingerTimeoutMs);
    else this.#upstream.terminate();
    this.#client.close();
  }

  #send(frame: Buffer): void {
    this.#client.sendBuffer.write(frame, 0, frame.length, false);
  }

  #leave(inOrder = false): void {
    this.#over = true;
    this.#upstream.user = null;
    if (inOrder) this.#client.giveBack(this.#place);
    else this.#place.give();
  }

  #touch(): void {
    const { clock, limits } = this.#client.context;
    this.#client.deadlineMs = clock.nowMs + limits.streamIdleTimeoutMs;
  }
}
