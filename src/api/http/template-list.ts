import { Type } from '@sinclair/typebox';
import { int32 } from '../../protocol/api/primitives.ts';
import { Template, TemplateWithBuilds } from '../../protocol/api/template.ts';
import { listTemplatesOf, readTemplate, templatePageMax } from '../app/template-list.ts';
import { route } from './route.ts';
import { templateView, templateWithBuildsView } from './template-view.ts';

const teamID = Type.Optional(Type.String({ description: 'Deprecated; must be the team of the credential' }));
const paging = {
  limit: Type.Optional(int32({ minimum: 1, maximum: templatePageMax, default: templatePageMax })),
  nextToken: Type.Optional(Type.String()),
};
const nextTokenHeader = { 'X-Next-Token': 'Token of the next page, when there is one' };

export const listTemplatesV1 = route({
  operationId: 'listTemplates',
  method: 'GET',
  path: '/templates',
  summary: 'All templates of the team, newest first',
  deprecated: true,
  auth: 'teamOrUser',
  query: Type.Object({ teamID }),
  responses: { 200: { description: 'The templates', schema: Type.Array(Template) } },
  async handle(app, { caller, query }) {
    const { items } = await listTemplatesOf(app, caller.team, query, false);
    return { status: 200, body: items.map(templateView) };
  },
});

export const listTemplatesV2 = route({
  operationId: 'listTemplatesV2',
  method: 'GET',
  path: '/v2/templates',
  summary: 'Templates of the team, newest first, page by page',
  auth: 'teamOrUser',
  query: Type.Object({ teamID, ...paging }),
  responses: { 200: { description: 'A page of templates', schema: Type.Array(Template), headers: nextTokenHeader } },
  async handle(app, { caller, query }) {
    const { items, nextToken } = await listTemplatesOf(app, caller.team, query, true);
    return { status: 200, body: items.map(templateView), headers: { ...(nextToken !== null && { 'X-Next-Token': nextToken }) } };
  },
});

export const readTemplateRoute = route({
  operationId: 'getTemplate',
  method: 'GET',
  path: '/templates/{templateID}',
  summary: 'One of the team\'s templates with a page of its builds, newest first',
  auth: 'team',
  params: Type.Object({ templateID: Type.String() }),
  query: Type.Object(paging),
  responses: { 200: { description: 'The template', schema: TemplateWithBuilds, headers: nextTokenHeader } },
  errors: [404],
  async handle(app, { caller, params, query }) {
    const { template, names, builds, nextToken } = await readTemplate(app, caller.team, params.templateID, query);
    return {
      status: 200,
      body: templateWithBuildsView(template, names, builds),
      headers: { ...(nextToken !== null && { 'X-Next-Token': nextToken }) },
    };
  },
});
