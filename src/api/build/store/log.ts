import { logLevels } from '../../../protocol/api/template-build.ts';
import type { BuildLogEntry, BuildLogLevel } from '../../../protocol/build.ts';
import type { Db } from '../../database/db.ts';

/** Rows of one statement: both databases bound the number of its parameters. */
const rowsPerInsert = 500;

/** Adds lines behind the `first` ones that are there. */
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
    // The same lines again, after a crash between writing and remembering it, change nothing.
    await db
      .insertInto('build_log')
      .values(rows)
      .onConflict(conflict => conflict.doNothing())
      .execute();
  }
}

/** How many lines the log of a build has. */
export async function buildLogLength(db: Db, buildId: string): Promise<number> {
  const row = await db
    .selectFrom('build_log')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('build_id', '=', buildId)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/** Which lines of a log are asked for. */
export type BuildLogPage = {
  limit: number;
  level?: BuildLogLevel;
  /** Lines of at least `level` to leave out. */
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
  return (await query.execute()).map(row => ({
    timestampMs: row.timestamp_ms,
    level: logLevels[row.level] ?? 'info',
    message: row.message,
    ...(row.step !== null && { step: row.step }),
  }));
}
