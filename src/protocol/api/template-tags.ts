import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime, int32, nullable, oneOf } from './primitives.ts';

const assignmentsMax = 100;
const tagsMax = 100;
const searchCharactersMax = 128;

/** A ready build that was given a tag, and when. */
const TemplateTagAssignment = Type.Object(
  {
    assignmentId: Type.String({ format: 'uuid', description: 'The same for the same tag and build' }),
    buildId: Type.String({ format: 'uuid' }),
    assignedAt: dateTime(),
    buildCreatedAt: dateTime(),
    buildFinishedAt: nullable(dateTime()),
  },
  { $id: 'TemplateTagAssignment' },
);
export type TemplateTagAssignment = Static<typeof TemplateTagAssignment>;

const nextCursor = nullable(Type.String({ description: 'Where the next page begins; null: there is none' }));

/** Answer of GET /templates/{templateID}/tags/{tag}/assignments. */
export const TemplateTagAssignments = Type.Object(
  { data: Type.Array(TemplateTagAssignment, { description: 'The newest first' }), nextCursor },
  { $id: 'TemplateTagAssignmentsResponse' },
);

/** Query of GET /templates/{templateID}/tags/{tag}/assignments. */
export const TagAssignmentsQuery = Type.Object({
  cursor: Type.Optional(Type.String()),
  limit: Type.Optional(int32({ minimum: 1, maximum: assignmentsMax, default: 50 })),
});

/** The orders of tags: by name, or by when they were last assigned. */
const tagSorts = ['latest_asc', 'latest_desc', 'name_asc', 'name_desc'] as const;
export type TagSort = (typeof tagSorts)[number];

/** Query of GET /templates/{templateID}/tags/groups. */
export const TagGroupsQuery = Type.Object({
  assignmentLimit: Type.Optional(int32({ minimum: 1, maximum: assignmentsMax, default: 6 })),
  tagsLimit: Type.Optional(int32({ minimum: 1, maximum: tagsMax, default: 25 })),
  tagsCursor: Type.Optional(Type.String()),
  search: Type.Optional(Type.String({ maxLength: searchCharactersMax, description: 'Part of a tag' })),
  sort: Type.Optional(oneOf(tagSorts)),
});

/** Answer of GET /templates/{templateID}/tags/groups. */
export const TemplateTagGroups = Type.Object(
  {
    tags: Type.Array(
      Type.Object(
        {
          tag: Type.String(),
          assignments: Type.Array(TemplateTagAssignment, { description: 'The newest first' }),
          hasMore: Type.Boolean({ description: 'The tag has more assignments' }),
        },
        { $id: 'TemplateTagGroup' },
      ),
    ),
    nextCursor,
  },
  { $id: 'TemplateTagGroupsResponse' },
);
export type TemplateTagGroups = Static<typeof TemplateTagGroups>;

/** Answer of GET /templates/{templateID}/tags/count. */
export const TemplateTagsCount = Type.Object({ total: int32({ minimum: 0 }) }, { $id: 'TemplateTagsCountResponse' });

/** Answer of GET /templates/{templateID}/tags/exists. */
export const TemplateTagExists = Type.Object(
  { exists: Type.Boolean(), normalizedTag: Type.String() },
  { $id: 'TemplateTagExistsResponse' },
);
