import { AtollError } from '../../base/error.ts';
import { findBuild } from '../store/build-read.ts';
import type { BuildDetail } from '../store/build-read.ts';
import { templateById } from '../store/template-resolve.ts';
import type { TemplateRecord } from '../store/template-row.ts';
import type { TeamRecord } from '../store/team.ts';
import type { App } from './context.ts';
import { isUuid, isVisible } from './template-reference.ts';

/** A build of one of the team's templates, by both IDs. Throws `invalid`, `not_found`, `forbidden`. */
export async function findOwnBuild(
  app: App,
  team: TeamRecord,
  templateId: string,
  buildId: string,
): Promise<{ template: TemplateRecord; build: BuildDetail }> {
  if (!isUuid(buildId)) throw new AtollError('invalid', 'buildID: is not a UUID');
  const template = await findOwnTemplateById(app, team, templateId);
  const build = await findBuild(app.store.db, buildId);
  if (!build || build.templateId !== template.templateId) throw new AtollError('not_found', `Build ${buildId} was not found`);
  return { template, build };
}

/** Of a template that the team may not know of, the answer is the same as of one that does not exist. */
export async function findOwnTemplateById(app: App, team: TeamRecord, templateId: string): Promise<TemplateRecord> {
  const template = await templateById(app.store.db, templateId);
  if (!template || !isVisible(template, team)) throw new AtollError('not_found', `Template "${templateId}" was not found`);
  if (template.teamId !== team.teamId) throw new AtollError('forbidden', `Template "${templateId}" belongs to another team`);
  return template;
}
