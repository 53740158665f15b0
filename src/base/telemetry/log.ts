/** Importance of a log entry, from the least to the greatest. */
export type Level = 'debug' | 'info' | 'warn' | 'error';
/** Facts of a log entry by name. Never secrets. */
type Fields = Record<string, unknown>;

const rank: Record<Level, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** A structured log. `fields` must never hold a secret: tokens, keys, header values and environment values stay out. */
export type Log = {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  /** The same log with `fields` on every line. */
  with(fields: Fields): Log;
};

/** A log that writes one JSON object a line to `write`, from `minimum` up. */
export function createLog(minimum: Level, write: (line: string) => void, bound: Fields = {}): Log {
  const emit = (level: Level, message: string, fields?: Fields) => {
    if (rank[level] < rank[minimum]) return;
    write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...bound, ...fields })}\n`);
  };
  return {
    debug: (message, fields) => emit('debug', message, fields),
    info: (message, fields) => emit('info', message, fields),
    warn: (message, fields) => emit('warn', message, fields),
    error: (message, fields) => emit('error', message, fields),
    with: fields => createLog(minimum, write, { ...bound, ...fields }),
  };
}

/** A log that goes nowhere, for tests. */
export const silentLog: Log = createLog('error', () => {});
