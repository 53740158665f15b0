import { AtollError } from '../../base/error.ts';
import { listBuilds, listTemplates, namesOf, newestBuilds } from '../store/template-list.ts';
import type { TemplateName } from '../store/template-list.ts';
import { templateById, templateByName } from '../store/template-resolve.ts';
import type { BuildRecord, TemplateRecord } from '../store/template-row.ts';
import type { TeamRecord } from '../store/team.ts';
import { findUsers } from '../store/user.ts';
import type { UserRecord } from '../store/user.ts';
import type { App } from './context.ts';
import { pageOf, parsePlace } from './page-token.ts';
import { isVisible, parseReference } from './template-reference.ts';
import type { TemplateReference } from './template-reference.ts';

export const templatePageMax = 100;
/** Bounds the route that has no pages. */
const unpagedMax = 10_000;

export type ListedTemplate = {
  template: TemplateRecord;
  names: TemplateName[];
  /** The newest ready build, else the newest; null before the first. */
  build: BuildRecord | null;
  newestStatus: BuildRecord['status'];
  createdBy: UserRecord | null;
};

/** The templates of a team, newest first; without `page`, all. `teamId`, where given, must be the team's. Throws `invalid`. */
export async function listTemplatesOf(
  app: App,
  team: TeamRecord,
  query: { teamID?: string; limit?: number; nextToken?: string },
  paged: boolean,
): Promise<{ items: ListedTemplate[]; nextToken: string | null }> {
  if (query.teamID !== undefined && query.teamID !== team.teamId) {
    throw new AtollError('invalid', 'teamID: is not the team of the credential');
  }
  const limit = paged ? (query.limit ?? templatePageMax) : unpagedMax;
  const after = query.nextToken === undefined ? undefined : parsePlace(query.nextToken);
  const found = await listTemplates(app.store.db, team.teamId, { limit: limit + 1, ...(after && { after }) });
  const { items, nextToken } = pageOf(found, limit, template => ({ atUs: template.createdAtUs, id: template.templateId }));
  return { items: await withDetails(app, items), nextToken };
}

/** A template as lists show it. Throws `not_found`. */
export async function listedTemplate(app: App, templateId: string): Promise<ListedTemplate> {
  const template = await templateById(app.store.db, templateId);
  const [listed] = template ? await withDetails(app, [template]) : [];
  if (!listed) throw new AtollError('not_found', `Template "${templateId}" was deleted`);
  return listed;
}

async function withDetails(app: App, templates: TemplateRecord[]): Promise<ListedTemplate[]> {
  const { db } = app.store;
  const ids = templates.map(template => template.templateId);
  const names = await namesOf(db, ids);
  const builds = await newestBuilds(db, ids);
  const users = await findUsers(db, [...new Set(templates.flatMap(template => template.createdBy ?? []))]);
  return templates.map(template => {
    const build = builds.get(template.templateId);
    return {
      template,
      names: names.get(template.templateId) ?? [],
      build: build?.ready ?? build?.newest ?? null,
      newestStatus: build?.newest.status ?? 'waiting',
      createdBy: template.createdBy === null ? null : (users.get(template.createdBy) ?? null),
    };
  });
}

/**
 * One of a team's templates with a page of its builds, newest first.
 * Throws `not_found`, `forbidden` for a public template of another team, `invalid`.
 */
export async function readTemplate(
  app: App,
  team: TeamRecord,
  text: string,
  query: { limit?: number; nextToken?: string },
): Promise<{ template: TemplateRecord; names: TemplateName[]; builds: BuildRecord[]; nextToken: string | null }> {
  const { db } = app.store;
  const template = await ownTemplate(app, team, parseReference(text, 'templateID'));
  if (!template) throw new AtollError('not_found', `Template "${text}" was not found`);
  if (template.teamId !== team.teamId) throw new AtollError('forbidden', `Template "${text}" belongs to another team`);
  const limit = query.limit ?? templatePageMax;
  const after = query.nextToken === undefined ? undefined : parsePlace(query.nextToken);
  const found = await listBuilds(db, template.templateId, { limit: limit + 1, ...(after && { after }) });
  const { items, nextToken } = pageOf(found, limit, build => ({ atUs: build.createdAtUs, id: build.buildId }));
  return { template, names: (await namesOf(db, [template.templateId])).get(template.templateId) ?? [], builds: items, nextToken };
}

/** For operations on one's own templates: the template that is meant, also by its ID, if this team may know of it. */
async function ownTemplate(app: App, team: TeamRecord, { namespace, name }: TemplateReference): Promise<TemplateRecord | null> {
  const { db } = app.store;
  if (namespace !== null && namespace !== team.slug) {
    throw new AtollError('invalid', `templateID: the namespace "${namespace}" is not your team's ("${team.slug}")`);
  }
  const template =
    (await templateByName(db, team.slug, name)) ??
    (namespace === null ? ((await templateByName(db, '', name)) ?? (await templateById(db, name))) : null);
  return template && isVisible(template, team) ? template : null;
}
