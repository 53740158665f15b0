/** An entry of a sandbox's log, as the API answers it. */
export type LogEntry = { timestamp: string; message: string; level: string; fields: Record<string, string> };

type Read = (query: { direction: 'forward' | 'backward'; cursor?: number; limit: number }) => Promise<LogEntry[]>;

const pageMax = 1000;
/** Entries that are shown at a time; older ones go. */
const shownMax = 2000;

/** The end of a log, which grows. Pages begin at a millisecond, so what that one held already is left out. */
export class LogTail {
  readonly #read: Read;
  #cursor: number | undefined;
  #began = false;
  entries: LogEntry[] = [];

  constructor(read: Read) {
    this.#read = read;
  }

  /** Reads what is new. True where the entries have changed, and the first time. */
  async read(): Promise<boolean> {
    const page =
      this.#cursor === undefined
        ? (await this.#read({ direction: 'backward', limit: pageMax })).toReversed()
        : await this.#read({ direction: 'forward', cursor: this.#cursor, limit: pageMax });
    const known = new Map<string, number>();
    for (const entry of this.entries)
      if (Date.parse(entry.timestamp) === this.#cursor) known.set(keyOf(entry), (known.get(keyOf(entry)) ?? 0) + 1);
    const fresh = page.filter(entry => {
      const left = known.get(keyOf(entry)) ?? 0;
      known.set(keyOf(entry), left - 1);
      return left <= 0;
    });
    const isFirst = !this.#began;
    this.#began = true;
    if (fresh.length === 0) return isFirst;
    this.entries = [...this.entries, ...fresh].slice(-shownMax);
    this.#cursor = Date.parse(this.entries.at(-1)?.timestamp ?? '');
    return true;
  }
}

const keyOf = (entry: LogEntry) => JSON.stringify(entry);
