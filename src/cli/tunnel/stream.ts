import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { AtollError } from '../../base/error.ts';
import { FrameReader, maskedFrame, opcode } from '../../base/websocket-frames.ts';

/** Connections that carry nothing for an hour are cut; intermediaries may be less patient. */
const pingMs = 30_000;

/**
 * The bytes of a connection to a port of a sandbox. Each direction ends separately, and a reader that stops makes the
 * server wait.
 */
export class TunnelStream extends Duplex {
  readonly #socket: Socket;
  readonly #frames: FrameReader;
  readonly #pings: Timer;

  /** `rest`: bytes that came after the answer that opened it. */
  constructor(socket: Socket, rest: Buffer) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    this.#frames = new FrameReader(
      {
        data: (bytes, isText) => void (isText || this.push(Buffer.from(bytes)) || socket.pause()),
        messageEnd: (isText, length) => void (isText && length === 0 && this.push(null)),
        control: code => void (code === opcode.close && this.#closed()),
      },
      'server',
    );
    this.#pings = setInterval(() => socket.write(maskedFrame(opcode.ping)), pingMs);
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.on('error', error => this.destroy(error));
    socket.on('close', () => {
      if (!this.readableEnded) this.destroy(new AtollError('unavailable', 'The connection to the sandbox broke off.'));
    });
    if (rest.length > 0) this.#take(rest);
  }

  #take(bytes: Buffer): void {
    if (!this.#frames.take(bytes, 0)) this.destroy(new AtollError('internal', 'The other side speaks no WebSocket.'));
  }

  /** The other side accepts no more either. */
  #closed(): void {
    this.push(null);
    if (!this.writableEnded) this.end();
    this.#socket.end(maskedFrame(opcode.close));
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Uint8Array, _: string, done: (error?: Error | null) => void): void {
    this.#socket.write(maskedFrame(opcode.binary, chunk), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#socket.writable) this.#socket.write(maskedFrame(opcode.text), () => done());
    else done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearInterval(this.#pings);
    this.#socket.destroy();
    done(error);
  }
}
