/** Levels of log entries, from the least to the most important. */
export const sandboxLogLevels = ['debug', 'info', 'warn', 'error'] as const;
export type SandboxLogLevel = (typeof sandboxLogLevels)[number];

/** Something that happened in a sandbox or with it. */
export type SandboxLogEntry = {
  /** Epoch milliseconds. No two entries of a sandbox have the same, and later ones have a greater: it is their place. */
  timestampMs: number;
  level: SandboxLogLevel;
  /** What it is about: `sandbox`, `process`, `filesystem`, `network` or `agent`. */
  logger: string;
  message: string;
  /** The same in parts, for programs. */
  fields: Record<string, string>;
};

/** Which entries of a sandbox are wanted. */
export type ReadSandboxLogs = {
  sandboxId: string;
  /** From this time on. */
  fromMs?: number;
  /** Before this time. */
  beforeMs?: number;
  /** The newest first, instead of the oldest first. */
  backward: boolean;
  /** Entries of at least this level. */
  minimum?: SandboxLogLevel;
  /** Entries whose message contains this text, in whatever case. */
  search?: string;
  /** How many at most. */
  limit: number;
};

/** For how long entries are kept, days. */
export const sandboxLogDays = 7;

/** How many entries one answer holds at most. */
export const sandboxLogPageMax = 1000;
