/** Where a command writes. */
export type Terminal = {
  /** Results: what a person or a program asked for. */
  out(text: string): void;
  /** Everything else: progress, warnings, errors. */
  err(text: string): void;
  /** True where `err` goes to a person who sees lines being rewritten. */
  isInteractive: boolean;
};

export type Command = {
  /** One word, or two for a command of a group: `key create`. */
  name: string;
  /** What follows the name, e.g. `[--json]`. */
  usage: string;
  /** One line for the list of commands. */
  summary: string;
  /** Does it and answers the exit code: 0 done, 1 failed. Throws `invalid` for arguments that it does not take. */
  run(args: string[], terminal: Terminal): Promise<number>;
};
