import type { Db } from '../../database/db.ts';

/** Templates that are searched for shared layers. */
const templatesMax = 10_000;

/**
 * The layers of templates: digests by template, of the ready builds of a team's templates and of those that every team
 * may use by a name without a namespace.
 */
export async function layersByTemplate(db: Db, teamId: string): Promise<Map<string, Set<string>>> {
  const forAll = db.selectFrom('template_names').select('template_id').where('namespace', '=', '');
  const rows = await db
    .selectFrom('builds')
    .innerJoin('templates', 'templates.template_id', 'builds.template_id')
    .select(['builds.template_id', 'layers_json'])
    .where('status', '=', 'ready')
    .where('kind', '=', 'template')
    .where(({ or, and, eb }) =>
      or([eb('team_id', '=', teamId), and([eb('public', '=', 1), eb('templates.template_id', 'in', forAll)])]),
    )
    .orderBy('builds.created_at_us', 'desc')
    .limit(templatesMax)
    .execute();
  const layers = new Map<string, Set<string>>();
  for (const { template_id, layers_json } of rows) {
    const known = layers.get(template_id) ?? new Set();
    for (const digest of JSON.parse(layers_json) as string[]) known.add(digest);
    layers.set(template_id, known);
  }
  return layers;
}
