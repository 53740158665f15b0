/** The keyboard, or the input piped into the command. */
export type Input = {
  /** True if a person types. */
  isTerminal: boolean;
  chunks(): AsyncIterable<Uint8Array>;
  /** While raw, each key arrives at once and none has a special meaning. */
  setRaw(isRaw: boolean): void;
  size(): { columns: number; rows: number };
  /** Calls `listener` when the terminal's size changes, until the returned function is called. */
  onResize(listener: () => void): () => void;
};

/** Where a command reads and writes. */
export type Terminal = {
  /** Results: what a person or a program asked for. `taken` is called once the reader has room for more. */
  out(text: string | Uint8Array, taken?: () => void): void;
  /** Everything else: progress, warnings, errors. */
  err(text: string): void;
  /**
   * Runs `end` before this process ends because nobody reads `out` any more, until the returned function is called.
   * Absent: the reader stays.
   */
  whenUnread?(end: () => Promise<void>): () => void;
  /** Maximal width of lines if `out` goes to a person; absent: no limit. */
  columns?: number;
  /** True if `err` goes to a person who sees lines being rewritten. */
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
  /**
   * Runs the command and answers the exit code: 0 done, 1 failed. Throws `invalid` for arguments that it does not
   * accept.
   */
  run(args: string[], terminal: Terminal): Promise<number>;
};
