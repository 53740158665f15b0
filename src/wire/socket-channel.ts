import type { Channel, Listener } from './channel.ts';
import { closeFile, receiveFile, sendFile } from './files.ts';
import { FrameReader, frameOf } from './frame.ts';

/** Bytes that may wait to be sent. A reader that is further behind counts as gone. */
const waitingBytesMax = 256 << 20;
/** Interval (ms) and number of tries to send a file to a reader that has not taken the earlier ones. */
const fileRetryMs = 1;
const fileRetriesMax = 5_000;
/**
 * Messages with files that may wait: each holds a descriptor of this process for a reader that does not take what it
 * has asked for.
 */
export const waitingFilesMax = 1_024;

/** The part of the runtime's sockets that a channel needs. */
type Socket = { write(bytes: Uint8Array): number; end(): void; terminate(): void };

/**
 * A channel over a connected stream socket for messages, and a second one for files. It sends a file before its
 * message, so that the receiver never has to wait for the second socket.
 */
export class SocketChannel implements Channel {
  readonly #socket: Socket;
  readonly #files: number | null;
  readonly #reader: FrameReader;
  #listener: Listener | undefined;
  #early: [string, number | undefined][] = [];
  /** Bytes that the kernel did not take yet, in order. */
  #unsent: Uint8Array[] = [];
  #unsentBytes = 0;
  /** Messages with files for which there was no room, in order. */
  #withFiles: { text: string; file: number; tries: number }[] = [];
  #lastFile = 0;
  #filesTaken = 0;
  #open = true;

  /** `files`: the second socket, null where none are passed. `messageBytesMax`: of what is received. */
  constructor(socket: Socket, files: number | null, messageBytesMax?: number) {
    this.#socket = socket;
    this.#files = files;
    this.#reader = new FrameReader(messageBytesMax);
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
    if (this.#withFiles.length > waitingFilesMax) this.close();
    else if (this.#withFiles.length === 1) this.#sendFiles();
  }

  close(): void {
    if (!this.#open) return;
    this.#socket.terminate();
    this.closed();
  }

  /** Takes bytes from the socket. */
  received(bytes: Uint8Array): void {
    const isSound = this.#reader.push(bytes, (text, withFile) => this.#take(text, withFile));
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
    for (const { file } of this.#withFiles) closeFile(file);
    for (const [, file] of this.#early) if (file !== undefined) closeFile(file);
    if (this.#files !== null) closeFile(this.#files);
    this.#unsent = [];
    this.#listener?.closed();
  }

  #take(text: string, withFile: boolean): void {
    if (!this.#open) return;
    let file: number | undefined;
    if (withFile) {
      const received = this.#files === null ? 'failed' : receiveFile(this.#files);
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
      const outcome = this.#files === null ? 'failed' : sendFile(this.#files, next.file, this.#lastFile + 1);
      if (outcome === 'full' && next.tries++ < fileRetriesMax)
        return void setTimeout(() => this.#sendFiles(), fileRetryMs);
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
