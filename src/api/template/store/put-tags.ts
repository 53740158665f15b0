import { buildBounds } from '../../../protocol/api/template-build.ts';
import type { Db } from '../../database/db.ts';

/** Tags that should select a build of a template from now on. */
type Assignment = { templateId: string; buildId: string; tags: readonly string[]; nowUs: number };

/**
 * Points tags at a build: the newest assignment of a tag counts. Earlier ones stay as its history, whose oldest are
 * removed beyond `keptMax`; the ready build that a tag selects now is always kept.
 */
export async function putTags(
  db: Db,
  { templateId, buildId, tags, nowUs }: Assignment,
  keptMax: number = buildBounds.assignmentsPerTagMax,
): Promise<void> {
  const rows = tags.map(tag => ({ template_id: templateId, tag, build_id: buildId, assigned_at_us: nowUs }));
  await db
    .insertInto('build_tags')
    .values(rows)
    .onConflict(conflict => conflict.columns(['template_id', 'tag', 'build_id']).doUpdateSet({ assigned_at_us: nowUs }))
    .execute();
  const long = await db
    .selectFrom('build_tags')
    .select('tag')
    .where('template_id', '=', templateId)
    .where('tag', 'in', tags)
    .groupBy('tag')
    .having(({ fn }) => fn.countAll(), '>', keptMax)
    .execute();
  for (const { tag } of long) await forgetOldest(db, { templateId, tag, keptMax });
}

async function forgetOldest(
  db: Db,
  { templateId, tag, keptMax }: { templateId: string; tag: string; keptMax: number },
): Promise<void> {
  const assignments = db
    .selectFrom('build_tags')
    .innerJoin('builds', 'builds.build_id', 'build_tags.build_id')
    .select('build_tags.build_id')
    .where('build_tags.template_id', '=', templateId)
    .where('tag', '=', tag)
    .orderBy('assigned_at_us', 'desc')
    .orderBy('build_tags.build_id', 'desc');
  const newest = await assignments.limit(keptMax).execute();
  const selected = await assignments.where('status', '=', 'ready').limit(1).execute();
  await db
    .deleteFrom('build_tags')
    .where('template_id', '=', templateId)
    .where('tag', '=', tag)
    .where(
      'build_id',
      'not in',
      [...newest, ...selected].map(row => row.build_id),
    )
    .execute();
}

/** The tags of a template, including those whose builds are not ready. */
export async function tagNames(db: Db, templateId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('build_tags')
    .select('tag')
    .distinct()
    .where('template_id', '=', templateId)
    .execute();
  return rows.map(row => row.tag);
}
