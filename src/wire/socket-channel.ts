import { closeFile, receiveFile, sendFile } from './files.ts';
import { FrameReader, frameOf } from './frame.ts';
import { type ByteSocket, StreamChannel, type WaitingBytes } from './stream-channel.ts';

/** Interval (ms) and number of attempts to send a file to a reader that has not taken the earlier ones. */
const fileRetryMs = 1;
const fileRetriesMax = 5_000;
/**
 * Messages with files that may wait: each holds a descriptor of this process for a reader that does not take what it
 * asked for.
 */
export const waitingFilesMax = 1_024;

/**
 * A channel with a connected stream socket for messages and a second socket for files. It sends a file before its
 * message, so that the receiver never waits for the second socket.
 */
export class SocketChannel extends StreamChannel {
  readonly #files: number | null;
  readonly #reader: FrameReader;
  /** Messages with files for which there was no room, in order. */
  #withFiles: { text: string; file: number; tries: number }[] = [];
  #lastFile = 0;
  #filesTaken = 0;

  /**
   * `files`: the second socket, null where none are passed. `messageBytesMax`: limit for received messages. `waiting`:
   * see `StreamChannel`.
   */
  constructor(socket: ByteSocket, files: number | null, messageBytesMax?: number, waiting?: WaitingBytes) {
    super(socket, waiting);
    this.#files = files;
    this.#reader = new FrameReader(messageBytesMax);
  }

  override send(text: string, file?: number): void {
    if (!this.isOpen) return file === undefined ? undefined : closeFile(file);
    if (file === undefined) return this.write(frameOf(text, false));
    this.#withFiles.push({ text, file, tries: 0 });
    if (this.#withFiles.length > waitingFilesMax) this.close();
    else if (this.#withFiles.length === 1) this.#sendFiles();
  }

  override received(bytes: Uint8Array): void {
    const isSound = this.#reader.push(bytes, (text, withFile) => this.#take(text, withFile));
    if (!isSound) this.close();
  }

  protected override release(): void {
    for (const { file } of this.#withFiles) closeFile(file);
    if (this.#files !== null) closeFile(this.#files);
  }

  #take(text: string, withFile: boolean): void {
    if (!this.isOpen) return;
    let file: number | undefined;
    if (withFile) {
      const received = this.#files === null ? 'failed' : receiveFile(this.#files);
      if (typeof received === 'string' || received.id !== ++this.#filesTaken) {
        if (typeof received !== 'string') closeFile(received.file);
        return this.close();
      }
      file = received.file;
    }
    this.deliver(text, file);
  }

  #sendFiles(): void {
    for (let next = this.#withFiles[0]; next && this.isOpen; next = this.#withFiles[0]) {
      const outcome = this.#files === null ? 'failed' : sendFile(this.#files, next.file, this.#lastFile + 1);
      if (outcome === 'full' && next.tries++ < fileRetriesMax)
        return void setTimeout(() => this.#sendFiles(), fileRetryMs);
      if (outcome !== 'sent') return this.close();
      this.#lastFile++;
      this.#withFiles.shift();
      closeFile(next.file);
      this.write(frameOf(next.text, true));
    }
  }
}
