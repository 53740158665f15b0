import type { Db } from '../../database/db.ts';
import { configIn } from '../../template/store/row.ts';
import { behind } from '../../database/cursor.ts';
import type { Cursor } from '../../database/cursor.ts';

/** Which snapshots to list; all conditions must match. */
export type SnapshotFilter = {
  teamId: string;
  /** Only those of this sandbox. */
  sandboxId?: string;
  templateId?: string;
  tag?: string;
};

/** The build that a tag of a snapshot template selects. */
type TaggedSnapshot = { templateId: string; tag: string; buildId: string; takenAtUs: number };

/** The snapshots of a team after `after`, newest first: each tag of a snapshot template once, with its newest build. */
export async function listSnapshots(
  db: Db,
  filter: SnapshotFilter,
  page: { after?: Cursor; limit: number },
): Promise<TaggedSnapshot[]> {
  let tagged = db
    .selectFrom('build_tags')
    .innerJoin('builds', 'builds.build_id', 'build_tags.build_id')
    .innerJoin('templates', 'templates.template_id', 'build_tags.template_id')
    .select([
      'build_tags.template_id',
      'build_tags.tag',
      'build_tags.assigned_at_us',
      'builds.source_sandbox_id',
      'builds.build_id',
    ])
    .select(({ fn }) =>
      fn
        .agg<number>('row_number')
        .over(over =>
          over
            .partitionBy(['build_tags.template_id', 'build_tags.tag'])
            .orderBy('build_tags.assigned_at_us', 'desc')
            .orderBy('builds.build_id', 'desc'),
        )
        .as('place'),
    )
    .where('templates.team_id', '=', filter.teamId)
    .where('templates.kind', '=', 'snapshot')
    .where('builds.status', '=', 'ready');
  if (filter.templateId !== undefined) tagged = tagged.where('build_tags.template_id', '=', filter.templateId);
  if (filter.tag !== undefined) tagged = tagged.where('build_tags.tag', '=', filter.tag);
  let query = db.selectFrom(tagged.as('tagged')).selectAll().where('place', '=', 1);
  if (filter.sandboxId !== undefined) query = query.where('source_sandbox_id', '=', filter.sandboxId);
  const { after } = page;
  if (after) query = query.where(behind(after, 'assigned_at_us', 'build_id'));
  const rows = await query.orderBy('assigned_at_us', 'desc').orderBy('build_id', 'desc').limit(page.limit).execute();
  return rows.map(row => ({
    templateId: row.template_id,
    tag: row.tag,
    takenAtUs: row.assigned_at_us,
    buildId: row.build_id,
  }));
}

/** The IDs by which nodes know the memory of those snapshots that sandboxes can be made from. */
export async function memorySnapshotsInUse(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('builds')
    .select('config_json')
    .where('status', '=', 'ready')
    .where('config_json', 'like', '%napshotId%')
    .execute();
  return rows.flatMap(row => {
    const { memorySnapshotId, started } = configIn(row);
    return [memorySnapshotId, started?.snapshotId].filter(id => id !== undefined);
  });
}
