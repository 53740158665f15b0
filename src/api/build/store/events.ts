import type { Db } from '../../database/db.ts';
import { recordEvent } from '../../event/store/write.ts';

/** What happened to a build. `atUs`: microseconds since the epoch. */
type BuildChange = { type: 'created' | 'started' | 'ready' | 'failed'; atUs: number; data?: Record<string, unknown> };

/** Writes an event of a build, in the transaction that makes the change. */
export async function recordBuildEvent(db: Db, buildId: string, change: BuildChange): Promise<void> {
  const build = await db
    .selectFrom('builds')
    .innerJoin('templates', 'templates.template_id', 'builds.template_id')
    .select(['builds.template_id', 'templates.team_id'])
    .where('build_id', '=', buildId)
    .executeTakeFirst();
  if (!build) return; // deleted with its template
  await recordEvent(db, {
    teamId: build.team_id,
    type: `build.lifecycle.${change.type}`,
    subject: { kind: 'build', id: buildId },
    atUs: change.atUs,
    data: { template_id: build.template_id, build_id: buildId, ...change.data },
  });
}
