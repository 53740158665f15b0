import { AtollError } from '../../../base/error.ts';
import { findBuild } from '../store/read.ts';
import { templateById } from '../../template/store/resolve.ts';
import { isVisible } from '../../template/rules/reference.ts';
import { isUuid } from '../../../base/id.ts';
import type { BuildDetail } from '../record.ts';
import type { TemplateRecord } from '../../template/record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';

/** A build of one of the team's templates, by both IDs. Throws `invalid`, `not_found`, `forbidden`. */
export async function findOwnBuild(
  db: Db,
  team: TeamRecord,
  templateId: string,
  buildId: string,
): Promise<{ template: TemplateRecord; build: BuildDetail }> {
  if (!isUuid(buildId)) throw new AtollError('invalid', 'buildID: is not a UUID');
  const template = await findOwnTemplateById(db, team, templateId);
  const build = await findBuild(db, buildId);
  if (!build || build.templateId !== template.templateId)
    throw new AtollError('not_found', `Build ${buildId} was not found`);
  return { template, build };
}

/** Gives the same answer for a template that the team may not know of as for one that does not exist. */
export async function findOwnTemplateById(db: Db, team: TeamRecord, templateId: string): Promise<TemplateRecord> {
  const template = await templateById(db, templateId);
  if (!template || !isVisible(template, team))
    throw new AtollError('not_found', `Template "${templateId}" was not found`);
  if (template.teamId !== team.teamId)
    throw new AtollError('forbidden', `Template "${templateId}" belongs to another team`);
  return template;
}
