import { logLevels } from '../../../protocol/api/template-build.ts';
import type { BuildLogEntry, BuildLogLevel } from '../../../protocol/build.ts';
import type { Db } from '../../database/db.ts';

/** Rows of one statement: both databases limit the number of its parameters. */
const rowsPerInsert = 500;

/** Adds lines after the `first` ones. */
export async function appendBuildLog(
  db: Db,
  buildId: string,
  first: number,
  entries: readonly BuildLogEntry[],
): Promise<void> {
  for (let start = 0; start < entries.length; start += rowsPerInsert) {
    const rows = entries
      .slice(start, start + rowsPerInsert)
      .map((entry, index) => ({
        build_id: buildId,
        number: first + start + index,
        timestamp_ms: entry.timestampMs,
        level: logLevels.indexOf(entry.level),
        message: entry.message.replaceAll('\0', ''),
        step: entry.step ?? null,
      }));
    // After a crash between writing the lines and recording it, the same lines come again and change nothing.
    await db
      .insertInto('build_log')
      .values(rows)
      .onConflict(conflict => conflict.doNothing())
      .execute();
  }
}

/** The number of lines in a build's log: they are numbered without gaps, and counting would read all of them. */
export async function buildLogLength(db: Db, buildId: string): Promise<number> {
  const row = await db
    .selectFrom('build_log')
    .select(({ fn }) => fn.max<number | null>('number').as('last'))
    .where('build_id', '=', buildId)
    .executeTakeFirstOrThrow();
  return row.last === null ? 0 : row.last + 1;
}

/** The lines of a log to read. */
export type BuildLogPage = {
  limit: number;
  level?: BuildLogLevel;
  /** How many lines of at least `level` to skip. */
  offset?: number;
  backward?: boolean;
  /** Lines from (backward: before) this time on. */
  cursorMs?: number;
};

/** A page of the log of a build. */
export async function readBuildLog(db: Db, buildId: string, page: BuildLogPage): Promise<BuildLogEntry[]> {
  let query = db
    .selectFrom('build_log')
    .selectAll()
    .where('build_id', '=', buildId)
    .orderBy('number', page.backward ? 'desc' : 'asc')
    .limit(page.limit);
  if (page.offset) query = query.offset(page.offset);
  if (page.level) query = query.where('level', '>=', logLevels.indexOf(page.level));
  if (page.cursorMs !== undefined) query = query.where('timestamp_ms', page.backward ? '<' : '>=', page.cursorMs);
  return (await query.execute()).map(entryOfRow);
}

/** A line and its number in the log, from 0. */
type NumberedEntry = { number: number; entry: BuildLogEntry };

/** At most `limit` lines after the `first` ones, in order. */
export async function readBuildLogBehind(
  db: Db,
  buildId: string,
  { first, limit, level }: { first: number; limit: number; level?: BuildLogLevel },
): Promise<NumberedEntry[]> {
  let query = db
    .selectFrom('build_log')
    .selectAll()
    .where('build_id', '=', buildId)
    .where('number', '>=', first)
    .orderBy('number')
    .limit(limit);
  if (level) query = query.where('level', '>=', logLevels.indexOf(level));
  return (await query.execute()).map(row => ({ number: row.number, entry: entryOfRow(row) }));
}

const entryOfRow = (row: {
  timestamp_ms: number;
  level: number;
  message: string;
  step: string | null;
}): BuildLogEntry => ({
  timestampMs: row.timestamp_ms,
  level: logLevels[row.level] ?? 'info',
  message: row.message,
  ...(row.step !== null && { step: row.step }),
});
