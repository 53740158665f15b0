import { AtollError } from '../../../base/error.ts';
import { namesOf } from '../store/list.ts';
import { removeTags, tagsOf } from '../store/change.ts';
import { putTags, tagNames } from '../store/put-tags.ts';
import { defaultTag, findTemplate, parseReference, selectBuild } from './reference.ts';
import { isUuid } from '../../../base/id.ts';
import type { TemplateRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Clock } from '../../../base/clock.ts';
import { buildBounds } from '../../../protocol/api/template-build.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { lockTeam } from '../../team/store/lock.ts';

const tagPattern = /^[a-z0-9_.-]{1,128}$/;

/**
 * Tags to assign, each once. Throws `invalid`, also for one that looks like a UUID, because it could not be told from a
 * build's ID.
 */
export function parseTags(tags: readonly string[]): string[] {
  const parsed = tags.map(tag => tag.trim().toLowerCase());
  const bad = parsed.find(tag => !tagPattern.test(tag) || isUuid(tag));
  if (bad !== undefined)
    throw new AtollError(
      'invalid',
      `tags: "${bad}" can't be a tag; use letters, digits, "-", "_" and ".", and no UUID`,
    );
  return [...new Set(parsed)];
}

/** Points tags at the build that `target` selects. Throws `invalid`, `forbidden`, `not_found`, `rate_limited`. */
export async function assignTemplateTags(
  { clock, db }: { clock: Clock; db: Db },
  team: TeamRecord,
  target: string,
  tags: readonly string[],
): Promise<{ tags: string[]; buildId: string; templateId: string }> {
  const wanted = parseTags(tags);
  if (wanted.length === 0) throw new AtollError('invalid', 'tags: name at least one');
  const { template, tag } = await ownTemplate(db, team, target, 'target');
  const build = await selectBuild(db, template, tag ?? defaultTag);
  if (!build) throw new AtollError('not_found', `Template "${target}" has no ready build with that tag`);
  const { templateId } = template;
  await inTransaction(db, async db => {
    await lockTeam(db, team.teamId);
    await requireTagPlaces(db, templateId, wanted);
    await putTags(db, { templateId, buildId: build.buildId, tags: wanted, nowUs: clock() });
  });
  return { tags: wanted, buildId: build.buildId, templateId };
}

/**
 * Makes sure that a template may have these tags in addition to its present ones. `db` is a transaction that has locked
 * the team. Throws `rate_limited`.
 */
export async function requireTagPlaces(db: Db, templateId: string, tags: readonly string[]): Promise<void> {
  const { tagsPerTemplateMax } = buildBounds;
  if (new Set([...(await tagNames(db, templateId)), ...tags]).size > tagsPerTemplateMax)
    throw new AtollError(
      'rate_limited',
      `tags: the template would have more than ${tagsPerTemplateMax}, which is the most (tagsPerTemplateMax): ` +
        'delete some first',
    );
}

/** Removes tags of a template and answers its ID; missing ones are fine. Throws `invalid`, `forbidden`, `not_found`. */
export async function removeTemplateTags(
  db: Db,
  team: TeamRecord,
  name: string,
  tags: readonly string[],
): Promise<string> {
  const wanted = parseTags(tags);
  if (wanted.length === 0) throw new AtollError('invalid', 'tags: name at least one');
  if (wanted.includes(defaultTag)) throw new AtollError('invalid', `tags: "${defaultTag}" can't be removed`);
  if (name.includes(':')) throw new AtollError('invalid', 'name: must not have a tag');
  const { template } = await ownTemplate(db, team, name, 'name');
  await removeTags(db, template.templateId, wanted);
  return template.templateId;
}

/** The tags of a template with the builds that they select. Throws `invalid`, `forbidden`, `not_found`. */
export async function listTemplateTags(
  db: Db,
  team: TeamRecord,
  text: string,
): Promise<{ tag: string; buildId: string; assignedAtUs: number }[]> {
  const { template } = await ownTemplate(db, team, text, 'templateID');
  return tagsOf(db, template.templateId);
}

/** A template that the team may change, by name or ID. Throws `invalid`, `forbidden`, `not_found`. */
export async function ownTemplate(
  db: Db,
  team: TeamRecord,
  text: string,
  field: string,
): Promise<{ template: TemplateRecord; tag: string | null }> {
  const reference = parseReference(text, field);
  if (reference.namespace !== null && reference.namespace !== team.slug) {
    throw new AtollError(
      'invalid',
      `${field}: the namespace "${reference.namespace}" is not your team's ("${team.slug}")`,
    );
  }
  const template = await findTemplate(db, team, reference);
  if (!template) throw new AtollError('not_found', `Template "${text}" was not found`);
  if (template.teamId !== team.teamId) throw new AtollError('forbidden', `Template "${text}" belongs to another team`);
  return { template, tag: reference.tag };
}

/** The names of a template, `namespace/alias` where they have a namespace. */
export async function shownNames(db: Db, templateId: string): Promise<string[]> {
  const names = (await namesOf(db, [templateId])).get(templateId) ?? [];
  return names.map(({ namespace, alias }) => (namespace === '' ? alias : `${namespace}/${alias}`));
}
