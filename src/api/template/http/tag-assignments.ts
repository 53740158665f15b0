import { createHash } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import {
  TagAssignmentsQuery,
  TagGroupsQuery,
  TemplateTagAssignments,
  TemplateTagExists,
  TemplateTagGroups,
  TemplateTagsCount,
} from '../../../protocol/api/template-tags.ts';
import type { TemplateTagAssignment } from '../../../protocol/api/template-tags.ts';
import { formatTime } from '../../../base/time.ts';
import type { Db } from '../../database/db.ts';
import { route } from '../../http/route.ts';
import { countTemplateTags, listTagAssignments, listTagGroups, templateTagExists } from '../rules/tag-assignments.ts';
import type { TagAssignment } from '../record.ts';

const template = Type.Object({ templateID: Type.String() });
const errors = [404];

/** `GET /templates/{templateID}/tags/count` */
export const countTagsRoute = route({
  operationId: 'countTemplateTags',
  method: 'GET',
  path: '/templates/{templateID}/tags/count',
  summary: 'Count the tags of a template that select a ready build',
  auth: 'team',
  long: true,
  params: template,
  responses: { 200: { description: 'How many there are', schema: TemplateTagsCount } },
  errors,
  async handle({ db }: { db: Db }, { caller, params }) {
    return { status: 200, body: { total: await countTemplateTags(db, caller.team, params.templateID) } };
  },
});

/** `GET /templates/{templateID}/tags/exists` */
export const tagExistsRoute = route({
  operationId: 'templateTagExists',
  method: 'GET',
  path: '/templates/{templateID}/tags/exists',
  summary: 'Say whether a tag of a template selects a ready build',
  auth: 'team',
  params: template,
  query: Type.Object({ tag: Type.String() }),
  responses: { 200: { description: 'Whether it does', schema: TemplateTagExists } },
  errors,
  async handle({ db }: { db: Db }, { caller, params, query }) {
    const { tag, exists } = await templateTagExists(db, caller.team, params.templateID, query.tag);
    return { status: 200, body: { exists, normalizedTag: tag } };
  },
});

/** `GET /templates/{templateID}/tags/groups` */
export const listTagGroupsRoute = route({
  operationId: 'listTemplateTagGroups',
  method: 'GET',
  path: '/templates/{templateID}/tags/groups',
  summary: 'List the tags of a template with the builds that they were given to, page by page',
  auth: 'team',
  long: true,
  params: template,
  query: TagGroupsQuery,
  responses: { 200: { description: 'A page of tags', schema: TemplateTagGroups } },
  errors,
  async handle({ db }: { db: Db }, { caller, params, query }) {
    const { templateID } = params;
    const { groups, nextCursor } = await listTagGroups(db, caller.team, templateID, {
      ...query,
      assignmentLimit: query.assignmentLimit ?? TagGroupsQuery.properties.assignmentLimit.default,
      tagsLimit: query.tagsLimit ?? TagGroupsQuery.properties.tagsLimit.default,
      sort: query.sort ?? 'latest_desc',
    });
    const tags = groups.map(group => ({ ...group, assignments: group.assignments.map(assignmentView) }));
    return { status: 200, body: { tags, nextCursor } };
  },
});

/** `GET /templates/{templateID}/tags/{tag}/assignments` */
export const listTagAssignmentsRoute = route({
  operationId: 'listTemplateTagAssignments',
  method: 'GET',
  path: '/templates/{templateID}/tags/{tag}/assignments',
  summary: 'List the ready builds that a tag was given to, newest first, page by page',
  auth: 'team',
  long: true,
  params: Type.Object({ templateID: Type.String(), tag: Type.String() }),
  query: TagAssignmentsQuery,
  responses: { 200: { description: 'A page of assignments', schema: TemplateTagAssignments } },
  errors,
  async handle({ db }: { db: Db }, { caller, params, query }) {
    const { templateID, tag } = params;
    const limit = query.limit ?? TagAssignmentsQuery.properties.limit.default;
    const { items, nextToken } = await listTagAssignments(db, caller.team, templateID, tag, { ...query, limit });
    return { status: 200, body: { data: items.map(assignmentView), nextCursor: nextToken } };
  },
});

function assignmentView(assignment: TagAssignment): TemplateTagAssignment {
  const { tag, buildId, assignedAtUs, buildCreatedAtUs, buildFinishedAtUs } = assignment;
  return {
    assignmentId: assignmentId(tag, buildId),
    buildId,
    assignedAt: formatTime(assignedAtUs),
    buildCreatedAt: formatTime(buildCreatedAtUs),
    buildFinishedAt: buildFinishedAtUs === null ? null : formatTime(buildFinishedAtUs),
  };
}

/** Tag and build identify an assignment; clients expect a UUID (RFC 9562, version 8: of a digest). */
function assignmentId(tag: string, buildId: string): string {
  const hex = createHash('sha256').update(`${buildId} ${tag}`).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  );
}
