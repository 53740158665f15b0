/** Levels of log entries, from the least to the most important. */
export const sandboxLogLevels = ['debug', 'info', 'warn', 'error'] as const;
/** A level of log entries. */
export type SandboxLogLevel = (typeof sandboxLogLevels)[number];

/** What entries of a log are about. */
export const sandboxLoggers = ['sandbox', 'process', 'filesystem', 'network', 'agent'] as const;
/** What an entry of a log is about. */
export type SandboxLogger = (typeof sandboxLoggers)[number];

/** Something that happened in a sandbox or with it. */
export type SandboxLogEntry = {
  /**
   * Epoch milliseconds. No two entries of a sandbox share one, and later entries have greater ones: so it is the
   * entry's place in the log.
   */
  timestampMs: number;
  level: SandboxLogLevel;
  /** Subject: `sandbox`, `process`, `filesystem`, `network` or `agent`. */
  logger: string;
  message: string;
  /** The message as fields, for programs. */
  fields: Record<string, string>;
};

/** A query for entries of a sandbox. */
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
  /** Entries about this alone. */
  logger?: SandboxLogger;
  /** Entries whose message contains this text, upper or lower case. */
  search?: string;
  /** Entries at most. */
  limit: number;
};

/** For how long entries are kept, days. */
export const sandboxLogDays = 7;

/** Entries that one answer holds at most. */
export const sandboxLogPageMax = 1000;
