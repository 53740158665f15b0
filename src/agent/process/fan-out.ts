import { AtollError } from '../../base/error.ts';
import { wireErrorOf } from '../connect/code.ts';
import type { Outbox } from '../connect/outbox.ts';

/** Bytes of waiting output at which a subscriber counts as full. Subscribers share waiting chunks. */
const subscriberBytesMax = 512 << 10;

/** Longest time that a process waits for one full subscriber while others keep up, milliseconds. */
const stallCreditMsMax = 1000;
/** Milliseconds of credit regained per second. */
const stallCreditMsPerSecond = 100;

type Subscriber = { outbox: Outbox; creditMs: number; creditAt: number };

/**
 * Sends a process's output to all attached clients, in bounded memory. Nobody attached: the output is dropped, and the
 * process never waits. All attached clients are full (e.g. the only client stopped reading): the process waits, as it
 * would for a full pipe. Some are full and some keep up: the process waits for the full ones as long as their credit
 * lasts, which evens out different connections; then they end with `resource_exhausted`, after everything that waits
 * for them. So a slow client neither stops nor truncates another, and learns when it is truncated itself.
 */
export class FanOut {
  #subscribers = new Map<Outbox, Subscriber>();
  #room: Promise<void> | undefined;
  #progress = Promise.withResolvers<void>();

  get isEmpty(): boolean {
    return this.#subscribers.size === 0;
  }

  attach(outbox: Outbox): void {
    this.#subscribers.set(outbox, { outbox, creditMs: stallCreditMsMax, creditAt: performance.now() });
    outbox.onProgress = () => this.#progressed();
    // A client may have left while its stream was being opened.
    if (!outbox.isOpen) this.detach(outbox);
  }

  detach(outbox: Outbox): void {
    this.#subscribers.delete(outbox);
    this.#progressed();
  }

  add(envelope: Uint8Array<ArrayBuffer>): void {
    for (const outbox of this.#subscribers.keys()) outbox.add(envelope);
  }

  /** Ends every stream with `envelope` as its last message. */
  end(envelope: Uint8Array<ArrayBuffer>): void {
    this.add(envelope);
    for (const outbox of this.#subscribers.keys()) outbox.end();
    this.#subscribers.clear();
    this.#progressed();
  }

  /** Resolves once more may be added. Undefined: it may be added at once. */
  room(): Promise<void> | undefined {
    if (this.#room || this.#full().length > 0)
      return (this.#room ??= this.#waitForRoom().finally(() => (this.#room = undefined)));
    return undefined;
  }

  async #waitForRoom(): Promise<void> {
    for (;;) {
      const full = this.#full();
      if (full.length === 0) return;
      if (full.length === this.#subscribers.size) {
        await this.#progress.promise;
        continue;
      }
      const startedAt = performance.now();
      for (const subscriber of full) refill(subscriber, startedAt);
      await withTimeout(this.#progress.promise, Math.min(...full.map(subscriber => subscriber.creditMs)));
      const waitedMs = performance.now() - startedAt;
      for (const subscriber of full) this.#charge(subscriber, waitedMs);
    }
  }

  #charge(subscriber: Subscriber, waitedMs: number): void {
    subscriber.creditMs -= waitedMs;
    if (subscriber.creditMs > 0 || subscriber.outbox.bytes < subscriberBytesMax) return;
    const { outbox } = subscriber;
    outbox.end(
      wireErrorOf(
        new AtollError(
          'rate_limited',
          `output was read too slowly: more than ${subscriberBytesMax} bytes waited while other clients kept up`,
        ),
      ),
    );
    this.#subscribers.delete(outbox);
  }

  #full(): Subscriber[] {
    const full = [];
    for (const subscriber of this.#subscribers.values()) {
      if (!subscriber.outbox.isOpen) this.#subscribers.delete(subscriber.outbox);
      else if (subscriber.outbox.bytes >= subscriberBytesMax) full.push(subscriber);
    }
    return full;
  }

  #progressed(): void {
    this.#progress.resolve();
    this.#progress = Promise.withResolvers<void>();
  }
}

function refill(subscriber: Subscriber, now: number): void {
  const gainedMs = ((now - subscriber.creditAt) / 1000) * stallCreditMsPerSecond;
  subscriber.creditMs = Math.min(stallCreditMsMax, Math.max(0, subscriber.creditMs) + gainedMs);
  subscriber.creditAt = now;
}

async function withTimeout(promise: Promise<void>, timeoutMs: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, timeoutMs);
  await Promise.race([promise, late.promise]);
  clearTimeout(timer);
}
