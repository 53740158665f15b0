/** What a service speaks. */
export type Protocol = 'http/1.1' | 'h2';

/** Ports of all sandboxes that are remembered: of those beyond them the one that was heard first is asked anew. */
const portsMax = 16_384;

/**
 * What the services answered in that were asked, also while no connection to them is open: finding out costs a request
 * a moment. It is forgotten with its execution's place among those that are remembered.
 */
export class KnownProtocols {
  readonly #spoken = new Map<string, Protocol>();
  readonly #max: number;

  constructor(max = portsMax) {
    this.#max = max;
  }

  /** Undefined: nobody has asked yet. */
  of(executionId: string, port: number): Protocol | undefined {
    return this.#spoken.get(keyOf(executionId, port));
  }

  /** A service has shown what it speaks; undefined: not what was thought. */
  heard(executionId: string, port: number, protocol: Protocol | undefined): void {
    const key = keyOf(executionId, port);
    if (this.#spoken.get(key) === protocol) return;
    this.#spoken.delete(key);
    if (protocol === undefined) return;
    this.#spoken.set(key, protocol);
    if (this.#spoken.size <= this.#max) return;
    const [first] = this.#spoken.keys();
    if (first !== undefined) this.#spoken.delete(first);
  }
}

const keyOf = (executionId: string, port: number): string => `${executionId}:${port}`;
