import { encodeEnd, encodeMessage } from './envelope.ts';
import type { WireError } from './code.ts';

/**
 * Messages for one client of a stream. The outbox accepts everything and drops nothing: whoever fills it watches
 * `bytes` and decides what to do when too much is waiting.
 */
export class Outbox {
  /** Bytes that wait. */
  bytes = 0;
  /** When something was last added, by `performance.now()`. */
  lastAddedAt = performance.now();
  /** Called each time something was sent, and once when the client goes away. */
  onProgress: () => void = () => {};
  /** Called once when the stream is over: because it ended, or because the client went away. */
  onClose: () => void = () => {};

  #waiting: Uint8Array<ArrayBuffer>[] = [];
  #state: 'open' | 'ending' | 'closed' = 'open';
  #wake: (() => void) | undefined;

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** Adds a message. No effect once the stream is ending. */
  add(envelope: Uint8Array<ArrayBuffer>): void {
    if (this.#state !== 'open') return;
    this.#waiting.push(envelope);
    this.bytes += envelope.length;
    this.lastAddedAt = performance.now();
    this.#wake?.();
  }

  addMessage(message: unknown): void {
    this.add(encodeMessage(message));
  }

  /** Ends the stream after everything that was added. The first end counts. */
  end(error?: WireError): void {
    if (this.#state !== 'open') return;
    this.add(encodeEnd(error));
    this.#state = 'ending';
    this.#wake?.();
  }

  /** The client went away. */
  abandon(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#waiting = [];
    this.bytes = 0;
    this.#wake?.();
    this.onProgress();
    this.onClose();
  }

  /** The body of the answer. Reads from the outbox only as fast as the client takes it. */
  stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return new ReadableStream<Uint8Array<ArrayBuffer>>(
      { pull: controller => this.#send(controller), cancel: () => this.abandon() },
      // The stream's own buffer would use memory that `bytes` doesn't count.
      { highWaterMark: 0 },
    );
  }

  async #send(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): Promise<void> {
    while (this.#waiting.length === 0 && this.#state === 'open') {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
      this.#wake = undefined;
    }
    if (this.#state === 'closed') return;
    const [first, second] = this.#waiting;
    const bytes = second || !first ? Buffer.concat(this.#waiting) : first;
    this.#waiting = [];
    this.bytes = 0;
    if (bytes.length > 0) controller.enqueue(bytes);
    if (this.#state === 'ending') {
      this.#state = 'closed';
      controller.close();
      this.onProgress();
      this.onClose();
    } else this.onProgress();
  }
}
