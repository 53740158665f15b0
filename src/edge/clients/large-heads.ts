import type { EdgeLimits } from '../limits.ts';

/** A connection that receives the head of a request. */
type Arriving = { refuseHead(status: number, reason: string): unknown };

/**
 * The connections with a large unfinished head. Each keeps it in memory, and needs no key to do so. There are at most
 * `largeHeadsMax` of them. One more ends the connection whose head became large first: a head that arrives at the pace
 * of a network is finished long before.
 */
export class LargeHeads {
  readonly #limits: Pick<EdgeLimits, 'largeHeadBytes' | 'largeHeadsMax'>;
  readonly #arriving = new Set<Arriving>();

  constructor(limits: Pick<EdgeLimits, 'largeHeadBytes' | 'largeHeadsMax'>) {
    this.#limits = limits;
  }

  /** `bytes` of an unfinished head have arrived on `connection`. */
  grows(connection: Arriving, bytes: number): void {
    if (bytes < this.#limits.largeHeadBytes) return;
    this.#arriving.add(connection);
    if (this.#arriving.size <= this.#limits.largeHeadsMax) return;
    for (const oldest of this.#arriving) {
      this.#arriving.delete(oldest);
      oldest.refuseHead(503, 'too many large heads arrive at the moment');
      return;
    }
  }

  /** The head is complete, or the connection gave up on it. */
  ends(connection: Arriving): void {
    this.#arriving.delete(connection);
  }
}
