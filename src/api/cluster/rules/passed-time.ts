/** How long machines are waited for that say how late it is, ms: they do so every other second. */
const waitMs = 4_000;
const pollMs = 50;

/** What a machine said, on its own clock, and when that came here. */
type Said = { epoch: string; nowMs: number; hereMs: number };

/** How much time passes on machines, beside what passes here: by clocks that nobody can set. */
export class PassedTime {
  readonly #first = new Map<string, Said>();
  readonly #last = new Map<string, Said>();
  readonly #steadyMs: () => number;

  constructor(steadyMs: () => number = () => performance.now()) {
    this.#steadyMs = steadyMs;
  }

  /** Takes what a machine has just said. `epoch`: of its clock, which begins anew with its process. */
  heard(nodeId: string, { epoch, nowMs }: { epoch: string; nowMs: number }): void {
    const said = { epoch, nowMs, hereMs: this.#steadyMs() };
    if (this.#first.get(nodeId)?.epoch !== epoch) this.#first.set(nodeId, said);
    this.#last.set(nodeId, said);
  }

  forget(nodeId: string): void {
    this.#first.delete(nodeId);
    this.#last.delete(nodeId);
  }

  /** Counts from now on. */
  begin(): void {
    for (const [nodeId, said] of this.#last) this.#first.set(nodeId, said);
  }

  /**
   * By how much more time has passed on machines than here, ms, as the middle one says of those that are heard from now
   * on. Waits for all that were heard before, but not for long. Null where none said anything, undefined where none is.
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
