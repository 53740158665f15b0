import { Type } from '@sinclair/typebox';
import { AssignTags, AssignedTags, DeleteTags, TemplateTag } from '../../../protocol/api/template-build.ts';
import { formatTime } from '../../../base/time.ts';
import { assignTemplateTags, listTemplateTags, removeTemplateTags } from '../rules/tags.ts';
import { route } from '../../http/route.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';

/** `POST /templates/tags` */
export const assignTagsRoute = route({
  operationId: 'assignTemplateTags',
  method: 'POST',
  path: '/templates/tags',
  summary: 'Assign tags to the build that a template reference selects',
  auth: 'team',
  body: AssignTags,
  responses: { 201: { description: 'The tags and their build', schema: AssignedTags } },
  errors: [404],
  async handle(deps: { clock: Clock; db: Db }, { caller, body, audit }) {
    const { tags, buildId, templateId } = await assignTemplateTags(deps, caller.team, body.target, body.tags);
    audit({ target: `template:${templateId}`, after: { tags, buildId } });
    return { status: 201, body: { tags, buildID: buildId } };
  },
});

/** `DELETE /templates/tags` */
export const deleteTagsRoute = route({
  operationId: 'deleteTemplateTags',
  method: 'DELETE',
  path: '/templates/tags',
  summary: 'Delete tags of a template',
  auth: 'team',
  body: DeleteTags,
  responses: { 204: { description: 'They are gone' } },
  errors: [404],
  async handle({ db }: { db: Db }, { caller, body, audit }) {
    const templateId = await removeTemplateTags(db, caller.team, body.name, body.tags);
    audit({ target: `template:${templateId}`, before: { tags: body.tags } });
    return { status: 204 };
  },
});

/** `GET /templates/{templateID}/tags` */
export const listTagsRoute = route({
  operationId: 'listTemplateTags',
  method: 'GET',
  path: '/templates/{templateID}/tags',
  summary: 'List the tags of a template and their builds',
  auth: 'team',
  long: true,
  params: Type.Object({ templateID: Type.String() }),
  responses: { 200: { description: 'The tags', schema: Type.Array(TemplateTag) } },
  errors: [404],
  async handle({ db }: { db: Db }, { caller, params }) {
    const tags = await listTemplateTags(db, caller.team, params.templateID);
    return {
      status: 200,
      body: tags.map(({ tag, buildId, assignedAtUs }) => ({
        tag,
        buildID: buildId,
        createdAt: formatTime(assignedAtUs),
      })),
    };
  },
});
