import { Type } from '@sinclair/typebox';
import { TemplateAlias } from '../../../protocol/api/template.ts';
import { readAlias } from '../rules/alias.ts';
import { route } from '../../http/route.ts';
import type { Db } from '../../database/db.ts';

/** `GET /templates/aliases/{alias}` */
export const readTemplateAlias = route({
  operationId: 'getTemplateAlias',
  method: 'GET',
  path: '/templates/aliases/{alias}',
  summary: 'Check whether a template name is taken: 200 by this team, 403 by another, 404 not at all',
  auth: 'team',
  params: Type.Object({ alias: Type.String() }),
  responses: { 200: { description: 'The template behind the name', schema: TemplateAlias } },
  errors: [404],
  async handle({ db }: { db: Db }, { caller, params }) {
    const template = await readAlias(db, caller.team, params.alias);
    return { status: 200, body: { templateID: template.templateId, public: template.public } };
  },
});
