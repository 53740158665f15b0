/** How long to wait for machines to report their time, ms: they do so every other second. */
const waitMs = 4_000;
const pollMs = 50;

/** A machine's report, by its own clock, and when it arrived here. */
type Said = { epoch: string; nowMs: number; hereMs: number };

/** Compares the time that passes on machines with the time that passes here, by clocks that nobody can set. */
export class PassedTime {
  readonly #first = new Map<string, Said>();
  readonly #last = new Map<string, Said>();
  readonly #steadyMs: () => number;

  constructor(steadyMs: () => number = () => performance.now()) {
    this.#steadyMs = steadyMs;
  }

  /** Takes a machine's latest report. `epoch`: of its clock, which starts over with its process. */
  heard(nodeId: string, { epoch, nowMs }: { epoch: string; nowMs: number }): void {
    const said = { epoch, nowMs, hereMs: this.#steadyMs() };
    if (this.#first.get(nodeId)?.epoch !== epoch) this.#first.set(nodeId, said);
    this.#last.set(nodeId, said);
  }

  forget(nodeId: string): void {
    this.#first.delete(nodeId);
    this.#last.delete(nodeId);
  }

  /** Starts counting. */
  begin(): void {
    for (const [nodeId, said] of this.#last) this.#first.set(nodeId, said);
  }

  /**
   * How much more time has passed on machines than here, ms: the median of those that are heard from now on. Waits for
   * all that were heard before, but not for long. Null where none reported, undefined where there are none.
   */
  async ahead(): Promise<number | null | undefined> {
    if (this.#last.size === 0) return undefined;
    const askedMs = this.#steadyMs();
    const fresh = () => [...this.#last].filter(([, { hereMs }]) => hereMs > askedMs);
    for (const end = performance.now() + waitMs; performance.now() < end && fresh().length < this.#last.size;)
      await Bun.sleep(pollMs);
    const differences = fresh().flatMap(([nodeId, last]) => {
      const first = this.#first.get(nodeId);
      return first === undefined || first === last ? [] : last.nowMs - first.nowMs - (last.hereMs - first.hereMs);
    });
    return differences.toSorted((a, b) => a - b)[Math.floor(differences.length / 2)] ?? null;
  }
}
