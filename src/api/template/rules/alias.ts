import { AtollError } from '../../../base/error.ts';
import { templateByName } from '../store/resolve.ts';
import { parseReference, selectBuild } from './reference.ts';
import type { TemplateRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';

/**
 * The template behind a name, for somebody who wants to take the name or has it. Throws `not_found` for a free name (or
 * a tag that selects nothing), `forbidden` for one that another team has.
 */
export async function readAlias(db: Db, team: TeamRecord, text: string): Promise<TemplateRecord> {
  const { namespace, name, tag } = parseReference(text, 'alias');

  const template =
    namespace === null
      ? ((await templateByName(db, team.slug, name)) ?? (await templateByName(db, '', name)))
      : await templateByName(db, namespace, name);
  if (!template) throw new AtollError('not_found', `The template name "${text}" is free`);
  if (template.teamId !== team.teamId)
    throw new AtollError('forbidden', `The template name "${text}" belongs to another team`);
  if (tag !== null && !(await selectBuild(db, template, tag))) {
    throw new AtollError('not_found', `Template "${text}" has no ready build with the tag "${tag}"`);
  }
  return template;
}
