import { isUuid } from '../../../base/id.ts';
import { AtollError } from '../../../base/error.ts';
import { newestBuilds } from '../store/list.ts';
import { firstAlias, readyBuild, taggedBuild, templateById, templateByName } from '../store/resolve.ts';
import type { BuildRecord } from '../../build/record.ts';
import type { TemplateRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';

/** `[namespace "/"] name [":" tag]`, lower-cased. */
export type TemplateReference = { namespace: string | null; name: string; tag: string | null };

/** The tag that is used where none is given. */
export const defaultTag = 'default';
const namePattern = /^[a-z0-9_-]+$/;
const tagPattern = /^[a-z0-9_.-]+$/;
const referenceCharactersMax = 512;

/** Reads a template reference. `field` names it in the error (`invalid`). The tag `default` equals none. */
export function parseReference(text: string, field: string): TemplateReference {
  const refuse = (why: string): never => {
    throw new AtollError('invalid', `${field}: ${why}; expected [namespace/]name[:tag]`);
  };
  if (text.length > referenceCharactersMax) return refuse(`longer than ${referenceCharactersMax} characters`);
  const reference = text.trim().toLowerCase();
  const slash = reference.indexOf('/');
  const namespace = slash < 0 ? null : reference.slice(0, slash);
  const rest = reference.slice(slash + 1);
  const colon = rest.indexOf(':');
  const name = colon < 0 ? rest : rest.slice(0, colon);
  const tag = colon < 0 ? null : rest.slice(colon + 1);

  if (namespace !== null && !namePattern.test(namespace))
    return refuse('the namespace must be letters, digits, "-" and "_"');
  if (!namePattern.test(name)) return refuse('the name must be letters, digits, "-" and "_"');
  if (tag !== null && !tagPattern.test(tag)) return refuse('the tag must be letters, digits, "-", "_" and "."');
  return { namespace, name, tag: tag === defaultTag ? null : tag };
}

/** Whether a team may use a template. The team must not learn that other templates exist. */
export function isVisible(template: TemplateRecord, team: TeamRecord): boolean {
  return template.public || template.teamId === team.teamId;
}

/**
 * The template that a reference selects for a team, or null. A bare name is looked up in the team's own namespace, then
 * among the names without a namespace, then as a template ID; an explicit namespace is the only place to look.
 */
export async function findTemplate(
  db: Db,
  team: TeamRecord,
  reference: TemplateReference,
): Promise<TemplateRecord | null> {
  const { namespace, name } = reference;
  // In parallel, as every create waits for them.
  const named = await Promise.all(
    (namespace === null ? [team.slug, ''] : [namespace]).map(place => templateByName(db, place, name)),
  );
  const template = named.find(one => one && isVisible(one, team));
  if (template || namespace !== null) return template ?? null;
  const byId = await templateById(db, name);
  return byId && isVisible(byId, team) ? byId : null;
}

/** The template and the ready build that a reference selects. Throws `not_found` when there is none for this team. */
export async function resolveBuild(
  db: Db,
  team: TeamRecord,
  text: string,
): Promise<{ template: TemplateRecord; build: BuildRecord; alias: string | null }> {
  const reference = parseReference(text, 'templateID');
  const template = await findTemplate(db, team, reference);
  if (!template) throw new AtollError('not_found', `Template "${text}" was not found`);
  const [build, alias] = await Promise.all([
    selectBuild(db, template, reference.tag ?? defaultTag),
    firstAlias(db, template.templateId),
  ]);
  if (!build) {
    throw new AtollError(
      'not_found',
      reference.tag === null
        ? `Template "${text}" has no build that is ready: ${await newestOf(db, template)}`
        : `Template "${text}" was not found: no ready build carries the tag "${reference.tag}"`,
    );
  }
  return { template, build, alias };
}

async function newestOf(db: Db, { templateId }: TemplateRecord): Promise<string> {
  const { status } = (await newestBuilds(db, [templateId])).get(templateId)?.newest ?? {};
  if (status === 'building') return 'one is under way';
  return status === 'error'
    ? 'the newest one failed'
    : status === 'ready'
      ? 'the ready ones carry other tags'
      : 'none was started';
}

/** The build of a template that a tag, or a build ID in its place, selects. */
export async function selectBuild(db: Db, template: TemplateRecord, tag: string): Promise<BuildRecord | null> {
  const byId = isUuid(tag) ? await readyBuild(db, template.templateId, tag) : null;
  return byId ?? (await taggedBuild(db, template.templateId, tag));
}
