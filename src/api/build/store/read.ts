import type { BuildStatus } from '../../../protocol/api/template.ts';
import type { Db } from '../../database/db.ts';
import { buildOfRow, configIn, layersIn } from '../../template/store/row.ts';
import type { BuildDetail, BuildReason, BuildRecord, BuildRequest } from '../record.ts';

/** The build with this ID, or null. */
export async function findBuild(db: Db, buildId: string): Promise<BuildDetail | null> {
  const row = await db.selectFrom('builds').selectAll().where('build_id', '=', buildId).executeTakeFirst();
  if (!row) return null;
  return {
    ...buildOfRow(row),
    reason: row.reason_json === null ? null : (JSON.parse(row.reason_json) as BuildReason),
    request: row.request_json === null ? null : (JSON.parse(row.request_json) as BuildRequest),
  };
}

/** Builds in one of the given states, of every team. */
export async function buildsInStatus(db: Db, statuses: readonly BuildStatus[]): Promise<BuildRecord[]> {
  const rows = await db.selectFrom('builds').selectAll().where('status', 'in', statuses).execute();
  return rows.map(buildOfRow);
}

/** The builds of a template that have ended since `sinceUs`. */
export async function buildsEndedSince(db: Db, templateId: string, sinceUs: number): Promise<string[]> {
  const rows = await db
    .selectFrom('builds')
    .select('build_id')
    .where('template_id', '=', templateId)
    .where('finished_at_us', '>=', sinceUs)
    .execute();
  return rows.map(row => row.build_id);
}

/** Other builds of the template in these states that share a tag with the build. */
export async function rivalBuilds(
  db: Db,
  build: { templateId: string; buildId: string },
  statuses: readonly BuildStatus[],
): Promise<string[]> {
  const tags = db.selectFrom('build_tags').select('tag').where('build_id', '=', build.buildId);
  const rows = await db
    .selectFrom('builds')
    .innerJoin('build_tags', 'build_tags.build_id', 'builds.build_id')
    .select('builds.build_id')
    .distinct()
    .where('builds.template_id', '=', build.templateId)
    .where('builds.build_id', '!=', build.buildId)
    .where('status', 'in', statuses)
    .where('tag', 'in', tags)
    .execute();
  return rows.map(row => row.build_id);
}

/** How many builds of a team run, without those in `except`. */
export async function openBuildCount(db: Db, teamId: string, except: readonly string[] = []): Promise<number> {
  const row = await db
    .selectFrom('builds')
    .innerJoin('templates', 'templates.template_id', 'builds.template_id')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('team_id', '=', teamId)
    .where('status', '=', 'building')
    .$if(except.length > 0, query => query.where('build_id', 'not in', except))
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/** Every layer needed by a build that sandboxes can be made from. */
export async function layersInUse(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('builds')
    .select(['layers_json', 'config_json'])
    .where('status', '=', 'ready')
    .execute();
  const layersOf = (row: (typeof rows)[number]) => [...layersIn(row), ...(configIn(row).started?.layers ?? [])];
  return [...new Set(rows.flatMap(layersOf))];
}
