import type { BuildLogEntry, BuildLogLevel } from '../../../protocol/build.ts';
import type { Db } from '../../database/db.ts';
import type { StreamSource } from '../../event/record.ts';
import type { TeamRecord } from '../../team/record.ts';
import { buildLogLength, readBuildLogBehind } from '../store/log.ts';
import { findOwnBuild } from './find.ts';

/** Bounds of streams of builds' logs. */
export const buildLogStreamBounds = {
  /** How often it checks the database, ms. */
  pollMs: 250,
  /** Lines read at a time. */
  pageMax: 200,
} as const;

/**
 * The log of a build as it grows, from after its first `after` lines; it ends with the build. Throws `invalid`,
 * `not_found`, `forbidden`.
 */
export async function buildLogSource(
  db: Db,
  team: TeamRecord,
  { templateId, buildId }: { templateId: string; buildId: string },
  { after, level }: { after: number; level?: BuildLogLevel },
): Promise<StreamSource<BuildLogEntry>> {
  const find = async () => (await findOwnBuild(db, team, templateId, buildId)).build;
  await find();
  let first = after;
  return {
    begin: after,
    async next() {
      // The state is read first: a build ends after its last line was written, so a page read later has that line.
      const { status, reason } = await find();
      // After the last line of a page that is not full there are only lines of lower levels: nobody reads them again.
      const length = level ? await buildLogLength(db, buildId) : 0;
      const page = { first, limit: buildLogStreamBounds.pageMax, ...(level && { level }) };
      const lines = await readBuildLogBehind(db, buildId, page);
      const items = lines.map(({ number, entry }) => ({ place: number + 1, item: entry }));
      const isMore = lines.length === buildLogStreamBounds.pageMax;
      first = Math.max(first, items.at(-1)?.place ?? 0, isMore ? 0 : length);
      const isOver = (status === 'ready' || status === 'error') && !isMore;
      return { items, isMore, ...(isOver && { end: { status, ...(reason && { reason }) } }) };
    },
  };
}
