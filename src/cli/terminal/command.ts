/** The keyboard, or what is piped into the command. */
export type Input = {
  /** True where a person types. */
  isTerminal: boolean;
  chunks(): AsyncIterable<Uint8Array>;
  /** While raw, each key comes at once and none has a meaning here. */
  setRaw(isRaw: boolean): void;
  size(): { columns: number; rows: number };
  /** Calls `listener` when the terminal's size changes, until the returned function is called. */
  onResize(listener: () => void): () => void;
};

/** Where a command reads and writes. */
export type Terminal = {
  /** Results: what a person or a program asked for. `taken` is called when whoever reads them has room for more. */
  out(text: string | Uint8Array, taken?: () => void): void;
  /** Everything else: progress, warnings, errors. */
  err(text: string): void;
  /**
   * Has `end` done before this process ends because nobody reads `out` any more, until the returned function is called.
   * Absent: who reads stays.
   */
  whenUnread?(end: () => Promise<void>): () => void;
  /** How wide lines may be where `out` goes to a person; absent: as wide as they are. */
  columns?: number;
  /** True where `err` goes to a person who sees lines being rewritten. */
  isInteractive: boolean;
  input?: Input;
};

/** A command of `atoll`, by its words. */
export type Command = {
  /** One word, or two for a command of a group: `key create`. */
  name: string;
  /** Options and arguments after the name, e.g. `[--json]`. */
  usage: string;
  /** One line for the list of commands. */
  summary: string;
  /** Does it and answers the exit code: 0 done, 1 failed. Throws `invalid` for arguments that it does not take. */
  run(args: string[], terminal: Terminal): Promise<number>;
};
