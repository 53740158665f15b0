import { sql } from 'kysely';
import type { Expression, RawBuilder, SelectQueryBuilder } from 'kysely';
import { statesShownAs, transitionOf, transitions } from '../../../../protocol/state.ts';
import type { ShownState } from '../../../../protocol/state.ts';
import { kindOf } from '../../../database/db.ts';
import type { Db } from '../../../database/db.ts';
import { pairDigest } from '../labels.ts';
import { listedColumnNames, listedOfRow } from '../row.ts';
import type { Tables } from '../../../database/schema.ts';
import type { ListedSandbox, SandboxInTransition } from '../../record.ts';

/** Which sandboxes to list; all conditions must match. */
export type SandboxFilter = {
  teamId: string;
  shown: readonly ShownState[];
  /** All must match exactly. */
  metadata: ReadonlyArray<readonly [key: string, value: string]>;
  /** Inclusive, microseconds. */
  startedAfterUs?: number;
  templateId?: string;
  nodeId?: string;
  /**
   * Text at the start of the ID, or anywhere in a key or value of metadata of up to `textSearchedBytesMax`; case does
   * not matter.
   */
  text?: string;
};

/** A place in the order (start time, ID): the next page begins after this sandbox. */
export type SandboxCursor = { startedAtUs: number; sandboxId: string };

/** Which part of the sandboxes to list. */
export type SandboxPageOptions = { order: 'asc' | 'desc'; after?: SandboxCursor; limit: number; metadataBytes: number };

/** A page of sandboxes, and whether more follow. */
type ListedPage = { sandboxes: ListedSandbox[]; isMore: boolean };

/**
 * At most `limit` sandboxes after `after`, in the given direction of (start time, ID), with at most `metadataBytes` of
 * metadata, or a single sandbox: no more is read.
 */
export async function listSandboxes(db: Db, filter: SandboxFilter, page: SandboxPageOptions): Promise<ListedPage> {
  let query = filtered(db, filter);
  const { order, after, limit, metadataBytes } = page;
  if (after) query = query.where(placeOf('behind', order, sql`${after.startedAtUs}`, sql`${after.sandboxId}`));
  const found = query
    .select(['sandboxes.sandbox_id as id', 'started_at_us as at', metadataLength.as('bytes')])
    .orderBy('started_at_us', order)
    .orderBy('sandboxes.sandbox_id', order)
    .limit(limit + 1);
  const direction = sql.raw(order);
  const summed = db
    .selectFrom(found.as('found'))
    .select([
      'id',
      sql<number>`sum(bytes) over (order by at ${direction}, id ${direction}) - bytes`.as('bytes_before'),
      sql<number>`count(*) over ()`.as('found_count'),
    ]);
  const rows = await db
    .selectFrom(summed.as('summed'))
    .crossJoin('sandboxes')
    .whereRef('sandboxes.sandbox_id', '=', 'summed.id')
    .where('bytes_before', '<=', metadataBytes)
    .select([...listedColumnNames.map(name => `sandboxes.${name}` as const), 'found_count'])
    .orderBy('started_at_us', order)
    .orderBy('sandboxes.sandbox_id', order)
    .limit(limit)
    .execute();
  return { sandboxes: rows.map(listedOfRow), isMore: rows.length < Number(rows[0]?.found_count ?? 0) };
}

/**
 * Whether a row is after a place, or before and at it. As one comparison, an index finds the place; as two, the
 * database would read every row up to it.
 */
export function placeOf(
  where: 'behind' | 'until',
  order: 'asc' | 'desc',
  startedAtUs: Expression<number>,
  sandboxId: Expression<string>,
): RawBuilder<boolean> {
  const comparisons = { behind: { asc: '>', desc: '<' }, until: { asc: '<=', desc: '>=' } };
  const comparison = sql.raw(comparisons[where][order]);
  return sql`(started_at_us, sandboxes.sandbox_id) ${comparison} (${startedAtUs}, ${sandboxId})`;
}

/** Bytes of the metadata, known without reading it. */
export const metadataLength = sql<number>`coalesce(octet_length(sandboxes.metadata_json), 0)`;

/**
 * How many sandboxes match. This looks at all matches: a filter on metadata leaves few of a team's sandboxes. A page,
 * in contrast, ends after its first matches, whatever the filter.
 */
export async function countSandboxes(db: Db, filter: SandboxFilter): Promise<number> {
  const { count } = await filtered(db, filter, { byLabel: true })
    .select(count => count.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** At most `limit` sandboxes of a team that are in transition, ordered by ID. */
export async function sandboxesInTransition(db: Db, teamId: string, limit: number): Promise<SandboxInTransition[]> {
  const rows = await db
    .selectFrom('sandboxes')
    .select(['sandbox_id', 'state'])
    .where('team_id', '=', teamId)
    .where('state', 'in', transitions)
    .orderBy('sandbox_id')
    .limit(limit)
    .execute();
  return rows.flatMap(row => {
    const transition = transitionOf(row.state);
    return transition ? [{ sandboxId: row.sandbox_id, transition }] : [];
  });
}

/** The sandboxes that a filter lets through. */
export function filtered(
  db: Db,
  { metadata, ...filter }: SandboxFilter,
  { byLabel = false } = {},
): SelectQueryBuilder<Tables, 'sandboxes', object> {
  const digests = metadata.map(([key, value]) => pairDigest(key, value));
  const first = byLabel ? digests.shift() : undefined;
  let query = (first === undefined ? db.selectFrom('sandboxes') : labelled(db, first))
    .where('team_id', '=', filter.teamId)
    .where('state', 'in', filter.shown.flatMap(statesShownAs));
  if (filter.startedAfterUs !== undefined) query = query.where('started_at_us', '>=', filter.startedAfterUs);
  if (filter.templateId !== undefined) query = query.where('template_id', '=', filter.templateId);
  if (filter.nodeId !== undefined) query = query.where('node_id', '=', filter.nodeId);
  if (filter.text !== undefined) query = query.where(textMatch(db, filter.text));
  for (const digest of digests) {
    query = query.where('sandboxes.sandbox_id', 'in', labels =>
      labels.selectFrom('sandbox_labels').select('sandbox_labels.sandbox_id').where('pair_digest', '=', digest),
    );
  }
  return query;
}

/**
 * The sandboxes that have this pair, starting from the pair: SQLite executes a cross join in the order in which it is
 * written.
 */
function labelled(db: Db, digest: string): SelectQueryBuilder<Tables, 'sandboxes', object> {
  return db
    .selectFrom('sandbox_labels')
    .crossJoin('sandboxes')
    .whereRef('sandboxes.sandbox_id', '=', 'sandbox_labels.sandbox_id')
    .where('pair_digest', '=', digest);
}

/**
 * Escapes that JSON may hold and a text of PostgreSQL may not: NUL and surrogate halves; but not an escaped backslash
 * followed by such letters.
 */
const noText = '(?<!\\\\)((?:\\\\\\\\)*)\\\\u(?:0000|d[89a-f][0-9a-f]{2})';

/**
 * Longer metadata is not searched for a text. A search reads that of all sandboxes of a team, which may be 20,000: at
 * this size, that takes SQLite, and so the API's thread, up to half a second.
 */
const textSearchedBytesMax = 4 * 1024;

/** A text that may match between keys and values, or is written differently in JSON. */
const maybeForm = /["\\\p{Cc}]|^[{}:,]+$/u;

/**
 * The text is searched in the stored JSON, which a database does many times faster than parsing that. A match is in a
 * key or value, unless it may be part of JSON's syntax: a text with syntax characters, or metadata with escapes, is
 * searched once more in the pairs. Both databases give these as rows, by functions of different names.
 */
function textMatch(db: Db, text: string) {
  const isPostgres = kindOf(db) === 'postgres';
  const lower = text.toLowerCase();
  const stored = JSON.stringify(lower).slice(1, -1);
  // Not a pattern: a text that almost matches at every place would take a hundred times as long.
  const placeOf = (part: string, whole: RawBuilder<string>) =>
    isPostgres ? sql<number>`position(${part} in ${whole})` : sql<number>`instr(${whole}, ${part})`;
  const json = sql<string>`sandboxes.metadata_json`;
  const pairs = isPostgres
    ? sql`json_each_text(
        case when position('\\u' in ${json}) = 0 then ${json}
        else regexp_replace(${json}, ${noText}, '\\1\\\\ufffd', 'g') end::json
      ) as pair(key, value)`
    : sql`json_each(${json}) as pair`;
  const isInPair = sql<boolean>`exists (
    select 1 from ${pairs}
    where ${placeOf(lower, sql`lower(pair.key)`)} > 0 or ${placeOf(lower, sql`lower(pair.value)`)} > 0
  )`;
  const isOwn = maybeForm.test(lower)
    ? isInPair
    : sql<boolean>`case when ${placeOf('\\', json)} = 0 then true else ${isInPair} end`;
  return sql<boolean>`(
    lower(sandboxes.sandbox_id) like ${`${lower.replaceAll(/[\\%_]/g, '\\$&')}%`} escape '\\'
    or case
      when ${metadataLength} > ${textSearchedBytesMax} then false
      when ${placeOf(stored, sql`lower(${json})`)} = 0 then false
      else ${isOwn}
    end
  )`;
}
