import { totalmem } from 'node:os';

/**
 * Bytes that may wait in a process: half of the share of the machine's memory, or of the minimum, that the process has.
 */
const bytesMaxHere = Math.max(256 << 20, totalmem() / 8);

/** A connection whose local side is behind. */
type Behind = { giveUp(): void };

/**
 * Bytes that came over a process's carried connections and that their local sides have not taken. Each connection may
 * fill its window, but all of them together would exceed the process's memory: then those that have been behind longest
 * are given up.
 */
export class Backlog {
  readonly #bytesMax: number;
  /** In the order in which they fell behind. */
  readonly #behind = new Set<Behind>();
  #bytes = 0;

  /** `bytesMax`: for all connections together. */
  constructor(bytesMax = bytesMaxHere) {
    this.#bytesMax = bytesMax;
  }

  /** More than half of the limit is waiting: no sender should get as far ahead as usual. */
  get isHigh(): boolean {
    return this.#bytes > this.#bytesMax / 2;
  }

  /** Adds bytes that wait for it. */
  add(behind: Behind, bytes: number): void {
    this.#behind.add(behind);
    this.#bytes += bytes;
    for (const longest of this.#behind) {
      if (this.#bytes <= this.#bytesMax) return;
      longest.giveUp();
    }
  }

  /** Removes bytes that no longer wait; `isAll`: none is left. */
  remove(behind: Behind, bytes: number, isAll: boolean): void {
    this.#bytes -= bytes;
    if (isAll) this.#behind.delete(behind);
  }
}
