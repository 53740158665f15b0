import type { Channel, Listener } from './channel.ts';
import { closeFile, receiveFile, sendFile } from './files.ts';
import { FrameReader, frameOf } from './frame.ts';

/** What may wait to be sent. A reader that stands still for longer is not there any more. Bytes. */
const waitingBytesMax = 256 << 20;
/** How soon a file is offered again to a reader that has not taken the earlier ones, and how often. */
const fileRetryMs = 1;
const fileRetriesMax = 5_000;

/** The part of the runtime's sockets that a channel needs. */
export type Socket = { write(bytes: Uint8Array): number; end(): void; terminate(): void };

/**
 * A channel over a connected stream socket for messages, and a second one for files. A file is sent before its message is:
 * it is there when the message comes, so that nobody has to wait for the second socket.
 */
export class SocketChannel implements Channel {
  readonly #socket: Socket;
  readonly #files: number;
  readonly #reader = new FrameReader();
  #listener: Listener | undefined;
  #early: [string, number | undefined][] = [];
  /** What the kernel did not take yet, in order. */
  #unsent: Uint8Array[] = [];
  #unsentBytes = 0;
  /** Messages with files that found no room, in order. */
  #withFiles: { text: string; file: number; tries: number }[] = [];
  #lastFile = 0;
  #filesTaken = 0;
  #open = true;

  constructor(socket: Socket, files: number) {
    this.#socket = socket;
    this.#files = files;
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
    if (file === undefined) return this.#write(frameOf(text, false));
    this.#withFiles.push({ text, file, tries: 0 });
    if (this.#withFiles.length === 1) this.#sendFiles();
  }

  close(): void {
    if (!this.#open) return;
    this.#socket.terminate();
    this.closed();
  }

  /** To be called with what comes from the socket. */
  received(bytes: Uint8Array): void {
    const isSound = this.#reader.push(bytes, (text, withFile) => this.#take(text, withFile));
    if (!isSound) this.close();
  }

  /** To be called when the socket takes more. */
  drained(): void {
    const unsent = this.#unsent;
    this.#unsent = [];
    this.#unsentBytes = 0;
    for (const bytes of unsent) this.#write(bytes);
  }

  /** To be called when the socket has closed. */
  closed(): void {
    if (!this.#open) return;
    this.#open = false;
    for (const { file } of this.#withFiles) closeFile(file);
    for (const [, file] of this.#early) if (file !== undefined) closeFile(file);
    closeFile(this.#files);
    this.#unsent = [];
    this.#listener?.closed();
  }

  #take(text: string, withFile: boolean): void {
    if (!this.#open) return;
    let file: number | undefined;
    if (withFile) {
      const received = receiveFile(this.#files);
      if (typeof received === 'string' || received.id !== ++this.#filesTaken) {
        if (typeof received !== 'string') closeFile(received.file);
        return this.close();
      }
      file = received.file;
    }
    if (this.#listener) this.#listener.message(text, file);
    else this.#early.push([text, file]);
  }

  #sendFiles(): void {
    for (let next = this.#withFiles[0]; next && this.#open; next = this.#withFiles[0]) {
      const outcome = sendFile(this.#files, next.file, this.#lastFile + 1);
      if (outcome === 'full' && next.tries++ < fileRetriesMax) return void setTimeout(() => this.#sendFiles(), fileRetryMs);
      if (outcome !== 'sent') return this.close();
      this.#lastFile++;
      this.#withFiles.shift();
      closeFile(next.file);
      this.#write(frameOf(next.text, true));
    }
  }

  #write(bytes: Uint8Array): void {
    if (!this.#open) return;
    const written = this.#unsent.length > 0 ? 0 : Math.max(this.#socket.write(bytes), 0);
    if (written === bytes.length) return;
    // A copy of the rest alone would not be needed, but its length is what counts.
    this.#unsent.push(bytes.subarray(written));
    this.#unsentBytes += bytes.length - written;
    if (this.#unsentBytes > waitingBytesMax) this.close();
  }
}
