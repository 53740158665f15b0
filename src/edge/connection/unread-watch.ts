import type { EdgeLimits } from '../limits.ts';
import type { ByteSocket } from '../send-buffer.ts';

/**
 * Watches an HTTP/2 stream whose response is over until its client has taken all of it. Only the connection shows
 * whether the client takes anything: streams share it, so each may have to wait for bytes of the others.
 */
export class UnreadWatch {
  readonly #socket: Pick<ByteSocket, 'bytesCarried'>;
  readonly #limits: Pick<EdgeLimits, 'unreadTimeoutMs' | 'streamIdleTimeoutMs'>;
  #carried: number | undefined;
  /** When the response has been held for too long, however much the connection carries meanwhile. */
  #endMs = Number.POSITIVE_INFINITY;

  constructor(
    socket: Pick<ByteSocket, 'bytesCarried'>,
    limits: Pick<EdgeLimits, 'unreadTimeoutMs' | 'streamIdleTimeoutMs'>,
  ) {
    this.#socket = socket;
    this.#limits = limits;
  }

  /** The response is over. Answers when to look again. */
  begin(nowMs: number): number {
    this.#endMs = Math.min(this.#endMs, nowMs + this.#limits.streamIdleTimeoutMs);
    return this.#lookAt(nowMs);
  }

  /** Answers when to look again; undefined if nobody takes the response. */
  look(nowMs: number): number | undefined {
    if (nowMs >= this.#endMs || this.#socket.bytesCarried === this.#carried) return undefined;
    return this.#lookAt(nowMs);
  }

  #lookAt(nowMs: number): number {
    this.#carried = this.#socket.bytesCarried;
    return Math.min(this.#endMs, nowMs + this.#limits.unreadTimeoutMs);
  }
}
