import { AtollError } from '../../../base/error.ts';
import { listBuilds, listDefaultTemplates, listTemplates, namesOf, newestBuilds } from '../store/list.ts';
import { templateById, templateByName } from '../store/resolve.ts';
import { findUsers } from '../../team/store/user.ts';
import { pageOf, parseCursor } from '../../database/cursor.ts';
import { isVisible, parseReference } from './reference.ts';
import type { TemplateReference } from './reference.ts';
import type { TemplateName, TemplateRecord } from '../record.ts';
import type { BuildRecord } from '../../build/record.ts';
import type { TeamRecord, UserRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';

/** The most entries on a page, and the default. */
export const templatePageMax = 100;
/** Bounds the route without pages. */
const unpagedMax = 10_000;

/** A template as lists show it. */
export type ListedTemplate = {
  template: TemplateRecord;
  names: TemplateName[];
  /** The newest ready build, else the newest; null before the first. */
  build: BuildRecord | null;
  newestStatus: BuildRecord['status'];
  createdBy: UserRecord | null;
};

/** The templates of a team, newest first; without `paged`, all. Throws `invalid`. */
export async function listTemplatesOf(
  db: Db,
  team: TeamRecord,
  query: { limit?: number; nextToken?: string },
  paged: boolean,
): Promise<{ items: ListedTemplate[]; nextToken: string | null }> {
  const limit = paged ? (query.limit ?? templatePageMax) : unpagedMax;
  const after = query.nextToken === undefined ? undefined : parseCursor(query.nextToken);
  const found = await listTemplates(db, team.teamId, { limit: limit + 1, ...(after && { after }) });
  const { items, nextToken } = pageOf(found, limit, template => ({
    atUs: template.createdAtUs,
    id: template.templateId,
  }));
  return { items: await withDetails(db, items), nextToken };
}

/** The installation's own templates. Only their own team learns how often they are used. */
export async function defaultTemplates(db: Db, team: TeamRecord): Promise<ListedTemplate[]> {
  const listed = await withDetails(db, await listDefaultTemplates(db, unpagedMax));
  return listed.map(item =>
    item.template.teamId === team.teamId
      ? item
      : {
          ...item,
          template: { ...item.template, lastSpawnedAtUs: null, spawnCount: 0, buildCount: 0 },
          createdBy: null,
        },
  );
}

/** A template as lists show it. Throws `not_found`. */
export async function listedTemplate(db: Db, templateId: string): Promise<ListedTemplate> {
  const template = await templateById(db, templateId);
  const [listed] = template ? await withDetails(db, [template]) : [];
  if (!listed) throw new AtollError('not_found', `Template "${templateId}" was deleted`);
  return listed;
}

async function withDetails(db: Db, templates: TemplateRecord[]): Promise<ListedTemplate[]> {
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
  db: Db,
  team: TeamRecord,
  text: string,
  query: { limit?: number; nextToken?: string },
): Promise<{ template: TemplateRecord; names: TemplateName[]; builds: BuildRecord[]; nextToken: string | null }> {
  const template = await readableTemplate(db, team, text);
  const limit = query.limit ?? templatePageMax;
  const after = query.nextToken === undefined ? undefined : parseCursor(query.nextToken);
  const found = await listBuilds(db, template.templateId, { limit: limit + 1, ...(after && { after }) });
  const { items, nextToken } = pageOf(found, limit, build => ({ atUs: build.createdAtUs, id: build.buildId }));
  return {
    template,
    names: (await namesOf(db, [template.templateId])).get(template.templateId) ?? [],
    builds: items,
    nextToken,
  };
}

/** One of a team's own templates. Throws `not_found`, `forbidden` for a public one of another team, `invalid`. */
export async function readableTemplate(db: Db, team: TeamRecord, text: string): Promise<TemplateRecord> {
  const template = await ownTemplate(db, team, parseReference(text, 'templateID'));
  if (!template) throw new AtollError('not_found', `Template "${text}" was not found`);
  if (template.teamId !== team.teamId) throw new AtollError('forbidden', `Template "${text}" belongs to another team`);
  return template;
}

/** For operations on own templates: the template that is named, also by its ID, if this team may know of it. */
async function ownTemplate(
  db: Db,
  team: TeamRecord,
  { namespace, name }: TemplateReference,
): Promise<TemplateRecord | null> {
  if (namespace !== null && namespace !== team.slug) {
    throw new AtollError('invalid', `templateID: the namespace "${namespace}" is not your team's ("${team.slug}")`);
  }
  const template =
    (await templateByName(db, team.slug, name)) ??
    (namespace === null ? ((await templateByName(db, '', name)) ?? (await templateById(db, name))) : null);
  return template && isVisible(template, team) ? template : null;
}
