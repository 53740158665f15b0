import { Type } from '@sinclair/typebox';
import { TemplateAlias } from '../../protocol/api/template.ts';
import { readAlias } from '../app/template-alias.ts';
import { route } from './route.ts';

export const readTemplateAlias = route({
  operationId: 'getTemplateAlias',
  method: 'GET',
  path: '/templates/aliases/{alias}',
  summary: 'Whether a template name is taken: 200 by this team, 403 by another, 404 not at all',
  auth: 'team',
  params: Type.Object({ alias: Type.String() }),
  responses: { 200: { description: 'The template behind the name', schema: TemplateAlias } },
  errors: [400, 404],
  async handle(app, { caller, params }) {
    const template = await readAlias(app, caller.team, params.alias);
    return { status: 200, body: { templateID: template.templateId, public: template.public } };
  },
});
