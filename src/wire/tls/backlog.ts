import { totalmem } from 'node:os';

/** Bytes that may wait in a process: half of what it may have of the machine's memory, or of the least that it has. */
const bytesMaxHere = Math.max(256 << 20, totalmem() / 8);

/** A connection whose local side is behind. */
type Behind = { giveUp(): void };

/**
 * What has come over carried connections of a process for local sides that do not take it. Each may have its window,
 * and all of them together would be more than a process has: then those that are behind for the longest are given up.
 */
export class Backlog {
  readonly #bytesMax: number;
  /** In the order in which they fell behind. */
  readonly #behind = new Set<Behind>();
  #bytes = 0;

  /** `bytesMax`: of all together. */
  constructor(bytesMax = bytesMaxHere) {
    this.#bytesMax = bytesMax;
  }

  /** More than half of what may wait does: nobody should get as much ahead as usual. */
  get isHigh(): boolean {
    return this.#bytes > this.#bytesMax / 2;
  }

  /** So many bytes more wait for it. */
  add(behind: Behind, bytes: number): void {
    this.#behind.add(behind);
    this.#bytes += bytes;
    for (const longest of this.#behind) {
      if (this.#bytes <= this.#bytesMax) return;
      longest.giveUp();
    }
  }

  /** So many of them wait no more; `isAll`: none does. */
  remove(behind: Behind, bytes: number, isAll: boolean): void {
    this.#bytes -= bytes;
    if (isAll) this.#behind.delete(behind);
  }
}
