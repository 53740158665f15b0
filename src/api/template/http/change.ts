import { Type } from '@sinclair/typebox';
import { TemplateUpdate, TemplateUpdated } from '../../../protocol/api/template-build.ts';
import { deleteTemplate, updateTemplate, updateTemplateV1 } from '../rules/change.ts';
import { route } from '../../http/route.ts';
import type { Change } from '../../event/record.ts';
import type { TemplateRecord } from '../record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import type { CancelDeps } from '../../build/rules/follow.ts';

const params = Type.Object({ templateID: Type.String() });
const updated = { description: "The template's names", schema: TemplateUpdated };

/** `PATCH /v2/templates/{templateID}` */
export const updateTemplateV2Route = route({
  operationId: 'updateTemplateV2',
  method: 'PATCH',
  path: '/v2/templates/{templateID}',
  summary: 'Update a template: publish it, or make it private',
  auth: 'teamOrUser',
  params,
  body: TemplateUpdate,
  bodyOptional: true,
  responses: { 200: updated },
  errors: [404],
  async handle(deps: { clock: Clock; db: Db }, { caller, params, body, audit }) {
    const { before, names } = await updateTemplate(deps, caller.team, params.templateID, body);
    audit(publicChange(before, body));
    return { status: 200, body: { names } };
  },
});

/** `PATCH /templates/{templateID}` */
export const updateTemplateV1Route = route({
  operationId: 'updateTemplate',
  method: 'PATCH',
  path: '/templates/{templateID}',
  summary: 'Update a template: publish it with its names without namespace, or make it private',
  deprecated: true,
  auth: 'teamOrUser',
  params,
  body: TemplateUpdate,
  bodyOptional: true,
  responses: { 200: updated },
  errors: [404, 409],
  async handle(deps: { clock: Clock; db: Db }, { caller, params, body, audit }) {
    const { before, names } = await updateTemplateV1(deps, caller.team, params.templateID, body);
    audit(publicChange(before, body));
    return { status: 200, body: { names } };
  },
});

/** `DELETE /templates/{templateID}` */
export const deleteTemplateRoute = route({
  operationId: 'deleteTemplate',
  method: 'DELETE',
  path: '/templates/{templateID}',
  summary: 'Delete a template with its builds',
  auth: 'teamOrUser',
  params,
  responses: { 204: { description: 'It is gone' } },
  errors: [404],
  async handle(deps: CancelDeps, { caller, params, audit }) {
    const { templateId, public: wasPublic } = await deleteTemplate(deps, caller.team, params.templateID);
    audit({ target: `template:${templateId}`, before: { public: wasPublic } });
    return { status: 204 };
  },
});

function publicChange({ templateId, public: wasPublic }: TemplateRecord, change: { public?: boolean }): Change {
  return {
    target: `template:${templateId}`,
    before: { public: wasPublic },
    after: { public: change.public ?? wasPublic },
  };
}
