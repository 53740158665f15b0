/** Sandboxes that this process has started, by team, until they are written to the database. */
export class StartCounts {
  #counts = new Map<string, number>();

  count(teamId: string, starts = 1): void {
    this.#counts.set(teamId, (this.#counts.get(teamId) ?? 0) + starts);
  }

  /** The counts since the last call. */
  take(): Map<string, number> {
    const taken = this.#counts;
    this.#counts = new Map();
    return taken;
  }
}
