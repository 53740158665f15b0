import { Type } from '@sinclair/typebox';
import { int32 } from '../../../protocol/api/primitives.ts';
import { Template, TemplateContent, TemplateWithBuilds } from '../../../protocol/api/template.ts';
import { defaultTemplates, listTemplatesOf, readTemplate, templatePageMax } from '../rules/list.ts';
import { readContent } from '../rules/content.ts';
import { requireOwnTeam } from '../../team/rules/own-team.ts';
import { route } from '../../http/route.ts';
import { templateContentView, templateView, templateWithBuildsView } from './view.ts';
import type { BuildProtocol } from '../../../protocol/build.ts';
import type { Db } from '../../database/db.ts';

const teamID = Type.Optional(Type.String({ description: 'Deprecated; must be the team of the credential' }));
const paging = {
  limit: Type.Optional(int32({ minimum: 1, maximum: templatePageMax, default: templatePageMax })),
  nextToken: Type.Optional(Type.String()),
};
const nextTokenHeader = { 'X-Next-Token': 'Token of the next page, when there is one' };

/** `GET /templates` */
export const listTemplatesV1 = route({
  operationId: 'listTemplates',
  method: 'GET',
  path: '/templates',
  summary: 'List all templates of the team, newest first',
  deprecated: true,
  auth: 'teamOrUser',
  long: true,
  query: Type.Object({ teamID }),
  responses: { 200: { description: 'The templates', schema: Type.Array(Template) } },
  async handle({ db }: { db: Db }, { caller, query }) {
    requireOwnTeam(caller.team, query.teamID);
    const { items } = await listTemplatesOf(db, caller.team, {}, false);
    return { status: 200, body: items.map(templateView) };
  },
});

/** `GET /v2/templates` */
export const listTemplatesV2 = route({
  operationId: 'listTemplatesV2',
  method: 'GET',
  path: '/v2/templates',
  summary: 'List templates of the team, newest first, page by page',
  auth: 'teamOrUser',
  long: true,
  query: Type.Object({ teamID, ...paging }),
  responses: { 200: { description: 'A page of templates', schema: Type.Array(Template), headers: nextTokenHeader } },
  async handle({ db }: { db: Db }, { caller, query }) {
    const { teamID: named, ...page } = query;
    requireOwnTeam(caller.team, named);
    const { items, nextToken } = await listTemplatesOf(db, caller.team, page, true);
    return {
      status: 200,
      body: items.map(templateView),
      headers: { ...(nextToken !== null && { 'X-Next-Token': nextToken }) },
    };
  },
});

/** `GET /default-templates` */
export const listDefaultTemplatesRoute = route({
  operationId: 'listDefaultTemplates',
  method: 'GET',
  path: '/default-templates',
  summary: "List the installation's own templates, which every team may use",
  auth: 'team',
  long: true,
  responses: { 200: { description: 'The templates, by their IDs', schema: Type.Array(Template) } },
  async handle({ db }: { db: Db }, { caller }) {
    return { status: 200, body: (await defaultTemplates(db, caller.team)).map(templateView) };
  },
});

/** `GET /templates/{templateID}` */
export const readTemplateRoute = route({
  operationId: 'getTemplate',
  method: 'GET',
  path: '/templates/{templateID}',
  summary: 'Get a template of the team with a page of its builds, newest first',
  auth: 'team',
  long: true,
  params: Type.Object({ templateID: Type.String() }),
  query: Type.Object(paging),
  responses: { 200: { description: 'The template', schema: TemplateWithBuilds, headers: nextTokenHeader } },
  errors: [404],
  async handle({ db }: { db: Db }, { caller, params, query }) {
    const { template, names, builds, nextToken } = await readTemplate(db, caller.team, params.templateID, query);
    return {
      status: 200,
      body: templateWithBuildsView(template, names, builds),
      headers: { ...(nextToken !== null && { 'X-Next-Token': nextToken }) },
    };
  },
});

/** `GET /templates/{templateID}/content` */
export const readTemplateContentRoute = route({
  operationId: 'getTemplateContent',
  method: 'GET',
  path: '/templates/{templateID}/content',
  summary: 'Get how sandboxes of a template of the team begin, and its layers with who shares them',
  auth: 'team',
  params: Type.Object({ templateID: Type.String() }),
  responses: { 200: { description: 'Of the newest build that is ready', schema: TemplateContent } },
  errors: [404],
  async handle(deps: { db: Db; builder: BuildProtocol }, { caller, params }) {
    return { status: 200, body: templateContentView(await readContent(deps, caller.team, params.templateID)) };
  },
});
