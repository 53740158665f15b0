import { occupyingStates } from '../../../protocol/state.ts';
import type { Db } from '../../database/db.ts';

/** Sets whether every team may use a template. */
export async function setTemplatePublic(db: Db, templateId: string, isPublic: boolean, nowUs: number): Promise<void> {
  await db
    .updateTable('templates')
    .set({ public: isPublic ? 1 : 0, updated_at_us: nowUs })
    .where('template_id', '=', templateId)
    .execute();
}

/** Removes a template with its names, builds and tags. */
export async function deleteTemplateRow(db: Db, templateId: string): Promise<void> {
  await db.deleteFrom('templates').where('template_id', '=', templateId).execute();
}

/** Removes the name of a template. */
export async function unnameTemplate(db: Db, name: { namespace: string; alias: string }): Promise<void> {
  await db
    .deleteFrom('template_names')
    .where('namespace', '=', name.namespace)
    .where('alias', '=', name.alias)
    .execute();
}

/** Sandboxes, paused ones included, that come from a template. */
export type TemplateUsers = {
  /** The oldest sandboxes of one team. */
  shown: string[];
  /** The number of that team's other sandboxes. */
  more: number;
  /** The number of other teams' sandboxes. */
  ofOthers: number;
};

/** The sandboxes, paused ones included, that come from the template; one team's by ID, up to `shownMax`. */
export async function sandboxesOfTemplate(
  db: Db,
  templateId: string,
  { teamId, shownMax }: { teamId: string; shownMax: number },
): Promise<TemplateUsers> {
  const from = db
    .selectFrom('sandboxes')
    .where('template_id', '=', templateId)
    .where('state', 'in', [...occupyingStates, 'paused']);
  const counts = await from
    .select(({ fn, eb }) => [eb('team_id', '=', teamId).as('own'), fn.countAll<number>().as('count')])
    .groupBy('own')
    .execute();
  const countOf = (own: boolean) => Number(counts.find(row => Boolean(row.own) === own)?.count ?? 0);
  const shown = await from
    .select('sandbox_id')
    .where('team_id', '=', teamId)
    .orderBy('created_at_us')
    .orderBy('sandbox_id')
    .limit(shownMax)
    .execute();
  return {
    shown: shown.map(row => row.sandbox_id),
    more: Math.max(0, countOf(true) - shown.length),
    ofOthers: countOf(false),
  };
}

/** Removes tags of a template. */
export async function removeTags(db: Db, templateId: string, tags: readonly string[]): Promise<void> {
  await db.deleteFrom('build_tags').where('template_id', '=', templateId).where('tag', 'in', tags).execute();
}

/** Every tag with the ready build that it selects. */
export async function tagsOf(
  db: Db,
  templateId: string,
): Promise<{ tag: string; buildId: string; assignedAtUs: number }[]> {
  const rows = await db
    .selectFrom('build_tags')
    .innerJoin('builds', 'builds.build_id', 'build_tags.build_id')
    .select(['tag', 'build_tags.build_id', 'assigned_at_us'])
    .where('build_tags.template_id', '=', templateId)
    .where('status', '=', 'ready')
    .orderBy('assigned_at_us', 'desc')
    .execute();
  const newest = new Map<string, { tag: string; buildId: string; assignedAtUs: number }>();
  for (const row of rows) {
    if (!newest.has(row.tag))
      newest.set(row.tag, { tag: row.tag, buildId: row.build_id, assignedAtUs: row.assigned_at_us });
  }
  return [...newest.values()];
}
