import { AtollError } from '../../../base/error.ts';
import { formatTime } from '../../../base/time.ts';
import { parseTime } from '../../../base/clock.ts';
import type { TagSort } from '../../../protocol/api/template-tags.ts';
import { pageOf, parseCursor } from '../../database/cursor.ts';
import type { Db } from '../../database/db.ts';
import type { TeamRecord } from '../../team/record.ts';
import { countTags, listAssignments, listTagUses, newestAssignments } from '../store/tag-assignments.ts';
import type { TagUse } from '../store/tag-assignments.ts';
import type { TagAssignment } from '../record.ts';
import { taggedBuild } from '../store/resolve.ts';
import { ownTemplate, parseTags } from './tags.ts';

/** A tag with its newest assignments, and whether it has more. */
type TagGroup = { tag: string; assignments: TagAssignment[]; hasMore: boolean };

/** How many tags of a template select a ready build. Throws `invalid`, `forbidden`, `not_found`. */
export async function countTemplateTags(db: Db, team: TeamRecord, text: string): Promise<number> {
  const { template } = await ownTemplate(db, team, text, 'templateID');
  return countTags(db, template.templateId);
}

/** Whether a tag selects a ready build; `tag`: as in the request. Throws `invalid`, `forbidden`, `not_found`. */
export async function templateTagExists(
  db: Db,
  team: TeamRecord,
  text: string,
  wanted: string,
): Promise<{ tag: string; exists: boolean }> {
  const { template } = await ownTemplate(db, team, text, 'templateID');
  const [tag = ''] = parseTags([wanted]);
  return { tag, exists: (await taggedBuild(db, template.templateId, tag)) !== null };
}

/** A page of a tag's assignments, the newest first. Throws `invalid`, `forbidden`, `not_found`. */
export async function listTagAssignments(
  db: Db,
  team: TeamRecord,
  text: string,
  wanted: string,
  query: { cursor?: string; limit: number },
): Promise<{ items: TagAssignment[]; nextToken: string | null }> {
  const { template } = await ownTemplate(db, team, text, 'templateID');
  const [tag = ''] = parseTags([wanted]);
  const after = query.cursor === undefined ? undefined : parseCursor(query.cursor, 'cursor');
  const found = await listAssignments(db, template.templateId, tag, { after, limit: query.limit + 1 });
  return pageOf(found, query.limit, ({ assignedAtUs, buildId }) => ({ atUs: assignedAtUs, id: buildId }));
}

/** A page of a template's tags, each with its newest assignments. Throws `invalid`, `forbidden`, `not_found`. */
export async function listTagGroups(
  db: Db,
  team: TeamRecord,
  text: string,
  query: { tagsLimit: number; assignmentLimit: number; tagsCursor?: string; search?: string; sort: TagSort },
): Promise<{ groups: TagGroup[]; nextCursor: string | null }> {
  const { template } = await ownTemplate(db, team, text, 'templateID');
  const { tagsLimit, assignmentLimit, tagsCursor, sort } = query;
  const found = await listTagUses(db, template.templateId, {
    by: sort.startsWith('latest') ? 'latest' : 'name',
    direction: sort.endsWith('asc') ? 'asc' : 'desc',
    after: tagsCursor === undefined ? undefined : parseTagCursor(tagsCursor),
    search: searchOf(query.search),
    limit: tagsLimit + 1,
  });
  const uses = found.slice(0, tagsLimit);
  const tags = uses.map(({ tag }) => tag);
  const newest = await newestAssignments(db, template.templateId, tags, assignmentLimit + 1);
  const last = uses.at(-1);
  return {
    groups: tags.map(tag => {
      const own = newest.filter(assignment => assignment.tag === tag);
      return { tag, assignments: own.slice(0, assignmentLimit), hasMore: own.length > assignmentLimit };
    }),
    nextCursor: found.length > tagsLimit && last ? formatTagCursor(last) : null,
  };
}

function searchOf(text: string | undefined): string | undefined {
  const search = text?.trim().toLowerCase();
  if (search === undefined || /^[a-z0-9_.-]*$/.test(search)) return search;
  throw new AtollError('invalid', 'search: tags have letters, digits, "-", "_" and "." alone');
}

/** Tags may contain the underscores that separate the parts of a list's usual cursor. */
function formatTagCursor({ latestUs, tag }: TagUse): string {
  return Buffer.from(`${formatTime(latestUs)} ${tag}`).toString('base64url');
}

function parseTagCursor(token: string): TagUse {
  const [time = '', tag = '', ...rest] = Buffer.from(token, 'base64url').toString().split(' ');
  const latestUs = parseTime(time);
  if (latestUs === null || tag === '' || rest.length > 0)
    throw new AtollError('invalid', 'tagsCursor: is not a cursor that a page gave');
  return { latestUs, tag };
}
