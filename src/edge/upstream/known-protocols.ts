/** The protocol of a service. */
export type Protocol = 'http/1.1' | 'h2';

/** How many ports of all sandboxes are remembered. Beyond them, the port that was heard first is asked anew. */
const portsMax = 16_384;

/**
 * The protocols in which services answered, remembered also while no connection to them is open: finding out costs a
 * request a moment. They are forgotten when the execution loses its place among the remembered ones.
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

  /** A service has shown what it speaks; undefined: not the remembered protocol. */
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
