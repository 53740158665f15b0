import { sql } from 'kysely';
import type { Db } from '../../database/db.ts';
import type { TagAssignment } from '../record.ts';
import { behind } from '../../database/cursor.ts';
import type { Cursor } from '../../database/cursor.ts';

/** A tag, and when a ready build last got it. */
export type TagUse = { tag: string; latestUs: number };

/**
 * Tags in the order of their last assignment, or of their names, after the tag `after`. `search`: a part of their
 * names.
 */
type TagPage = {
  by: 'latest' | 'name';
  direction: 'asc' | 'desc';
  after?: TagUse | undefined;
  search?: string | undefined;
  limit: number;
};

/** How many tags of a template select a ready build. */
export async function countTags(db: Db, templateId: string): Promise<number> {
  const { total } = await readyTags(db, templateId)
    .select(({ fn }) => fn.count<number>('tag').distinct().as('total'))
    .executeTakeFirstOrThrow();
  return Number(total);
}

/** A page of a template's tags. */
export async function listTagUses(db: Db, templateId: string, page: TagPage): Promise<TagUse[]> {
  const { by, direction, after, search, limit } = page;
  let query = readyTags(db, templateId)
    .select(['tag', ({ fn }) => fn.max('assigned_at_us').as('latest_us')])
    .groupBy('tag');
  // Only `_` has a meaning in a pattern (any character) among the characters of tags: it is escaped to stand for
  // itself.
  if (search) query = query.where(sql<boolean>`tag like ${`%${search.replaceAll('_', '!_')}%`} escape '!'`);
  const than = sql.raw(direction === 'asc' ? '>' : '<');
  if (after)
    query =
      by === 'name'
        ? query.having(sql<boolean>`tag ${than} ${after.tag}`)
        : query.having(sql<boolean>`(max(assigned_at_us), tag) ${than} (${after.latestUs}, ${after.tag})`);
  if (by === 'latest') query = query.orderBy('latest_us', direction);
  const rows = await query.orderBy('tag', direction).limit(limit).execute();
  return rows.map(({ tag, latest_us }) => ({ tag, latestUs: Number(latest_us) }));
}

/** The newest assignments of each of these tags, at most `limit` of each. */
export async function newestAssignments(
  db: Db,
  templateId: string,
  tags: readonly string[],
  limit: number,
): Promise<TagAssignment[]> {
  if (tags.length === 0) return [];
  const ranked = assignments(db, templateId)
    .select(({ fn }) =>
      fn
        .agg<number>('row_number')
        .over(over => over.partitionBy('tag').orderBy('assigned_at_us', 'desc').orderBy('build_tags.build_id', 'desc'))
        .as('place'),
    )
    .where('tag', 'in', tags);
  const rows = await db
    .selectFrom(ranked.as('ranked'))
    .selectAll()
    .where('place', '<=', limit)
    .orderBy('place')
    .execute();
  return rows.map(assignmentOf);
}

/** The assignments of one tag after `after`, the newest first. */
export async function listAssignments(
  db: Db,
  templateId: string,
  tag: string,
  { after, limit }: { after?: Cursor | undefined; limit: number },
): Promise<TagAssignment[]> {
  let query = assignments(db, templateId).where('tag', '=', tag);
  if (after) query = query.where(behind(after, 'assigned_at_us', 'build_tags.build_id'));
  const rows = await query
    .orderBy('assigned_at_us', 'desc')
    .orderBy('build_tags.build_id', 'desc')
    .limit(limit)
    .execute();
  return rows.map(assignmentOf);
}

function readyTags(db: Db, templateId: string) {
  return db
    .selectFrom('build_tags')
    .innerJoin('builds', 'builds.build_id', 'build_tags.build_id')
    .where('build_tags.template_id', '=', templateId)
    .where('status', '=', 'ready');
}

function assignments(db: Db, templateId: string) {
  return readyTags(db, templateId).select([
    'tag',
    'build_tags.build_id',
    'assigned_at_us',
    'builds.created_at_us',
    'finished_at_us',
  ]);
}

type Row = {
  tag: string;
  build_id: string;
  assigned_at_us: number;
  created_at_us: number;
  finished_at_us: number | null;
};

function assignmentOf(row: Row): TagAssignment {
  return {
    tag: row.tag,
    buildId: row.build_id,
    assignedAtUs: row.assigned_at_us,
    buildCreatedAtUs: row.created_at_us,
    buildFinishedAtUs: row.finished_at_us,
  };
}
