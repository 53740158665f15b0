import { buildStatuses } from '../../../protocol/api/template.ts';
import type { BuildStatus } from '../../../protocol/api/template.ts';
import type { Db } from '../../database/db.ts';
import { buildOfRow, templateOfRow } from './row.ts';
import type { BuildRecord } from '../../build/record.ts';
import type { TemplateName, TemplateRecord } from '../record.ts';
import { behind } from '../../database/cursor.ts';
import type { Cursor } from '../../database/cursor.ts';

/** A team's own templates after `after`, newest first. Snapshots are not among them. */
export async function listTemplates(
  db: Db,
  teamId: string,
  page: { after?: Cursor; limit: number },
): Promise<TemplateRecord[]> {
  let query = db.selectFrom('templates').selectAll().where('team_id', '=', teamId).where('kind', '=', 'template');
  const { after } = page;
  if (after) query = query.where(behind(after, 'created_at_us', 'template_id'));
  const rows = await query.orderBy('created_at_us', 'desc').orderBy('template_id', 'desc').limit(page.limit).execute();
  return rows.map(templateOfRow);
}

/** Templates that every team may use and that have a name without a namespace, by ID. */
export async function listDefaultTemplates(db: Db, limit: number): Promise<TemplateRecord[]> {
  const named = db.selectFrom('template_names').select('template_id').where('namespace', '=', '');
  const rows = await db
    .selectFrom('templates')
    .selectAll()
    .where('kind', '=', 'template')
    .where('public', '=', 1)
    .where('template_id', 'in', named)
    .orderBy('template_id')
    .limit(limit)
    .execute();
  return rows.map(templateOfRow);
}

/** The names of templates, each template's oldest first. */
export async function namesOf(db: Db, templateIds: readonly string[]): Promise<Map<string, TemplateName[]>> {
  const names = new Map<string, TemplateName[]>(templateIds.map(id => [id, []]));
  if (templateIds.length === 0) return names;
  const rows = await db
    .selectFrom('template_names')
    .select(['template_id', 'namespace', 'alias'])
    .where('template_id', 'in', templateIds)
    .orderBy('created_at_us')
    .orderBy('alias')
    .execute();
  for (const { template_id, namespace, alias } of rows) names.get(template_id)?.push({ namespace, alias });
  return names;
}

/** The newest build of each template, and its newest ready one. Templates without a build have no entry. */
export async function newestBuilds(
  db: Db,
  templateIds: readonly string[],
): Promise<Map<string, { newest: BuildRecord; ready: BuildRecord | null }>> {
  if (templateIds.length === 0) return new Map();
  const newest = await newestOfEach(db, templateIds, buildStatuses);
  const ready = new Map((await newestOfEach(db, templateIds, ['ready'])).map(build => [build.templateId, build]));
  return new Map(
    newest.map(build => [build.templateId, { newest: build, ready: ready.get(build.templateId) ?? null }]),
  );
}

async function newestOfEach(
  db: Db,
  templateIds: readonly string[],
  statuses: readonly BuildStatus[],
): Promise<BuildRecord[]> {
  const ranked = db
    .selectFrom('builds')
    .selectAll()
    .select(({ fn }) =>
      fn
        .agg<number>('row_number')
        .over(over => over.partitionBy('template_id').orderBy('created_at_us', 'desc').orderBy('build_id', 'desc'))
        .as('place'),
    )
    .where('template_id', 'in', templateIds)
    .where('status', 'in', statuses);
  const rows = await db.selectFrom(ranked.as('ranked')).selectAll().where('place', '=', 1).execute();
  return rows.map(buildOfRow);
}

/** A template's builds after `after`, newest first. */
export async function listBuilds(
  db: Db,
  templateId: string,
  page: { after?: Cursor; limit: number },
): Promise<BuildRecord[]> {
  let query = db.selectFrom('builds').selectAll().where('template_id', '=', templateId);
  const { after } = page;
  if (after) query = query.where(behind(after, 'created_at_us', 'build_id'));
  const rows = await query.orderBy('created_at_us', 'desc').orderBy('build_id', 'desc').limit(page.limit).execute();
  return rows.map(buildOfRow);
}
