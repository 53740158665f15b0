import { AtollError } from '../../base/error.ts';
import { namesOf } from '../store/template-list.ts';
import { deleteTemplateRow, sandboxesOfTemplate, setTemplatePublic } from '../store/template-change.ts';
import { templateByName } from '../store/template-resolve.ts';
import type { TemplateRecord } from '../store/template-row.ts';
import { nameTemplate } from '../store/template-write.ts';
import type { TeamRecord } from '../store/team.ts';
import { cancelBuildsOf } from './build-follow.ts';
import type { App } from './context.ts';
import { firstTeam } from './first-team.ts';
import { ownTemplate, shownNames } from './template-tags.ts';

/** A template as it was before a change, and its names. */
export type ChangedTemplate = { before: TemplateRecord; names: string[] };

/** Changes who may use a template. Throws `invalid`, `forbidden`, `not_found`. */
export async function updateTemplate(app: App, team: TeamRecord, text: string, change: { public?: boolean }): Promise<ChangedTemplate> {
  const { template } = await ownTemplate(app, team, text, 'templateID');
  if (change.public !== undefined) await setTemplatePublic(app.store.db, template.templateId, change.public, app.clock());
  return { before: template, names: await shownNames(app, template.templateId) };
}

/**
 * The same by the deprecated route: publishing also claims the names without namespace, where the team is the installation's own.
 * Such a name is what everybody's `nginx` means, so that no other team may take one. Throws `conflict` where one is taken.
 */
export async function updateTemplateV1(app: App, team: TeamRecord, text: string, change: { public?: boolean }): Promise<ChangedTemplate> {
  const { template } = await ownTemplate(app, team, text, 'templateID');
  const { templateId } = template;
  await app.store.db.transaction().execute(async db => {
    if (change.public === undefined) return;
    await setTemplatePublic(db, templateId, change.public, app.clock());
    if (!change.public || team.slug !== firstTeam.slug) return;
    for (const { alias } of (await namesOf(db, [templateId])).get(templateId) ?? []) {
      const holder = await templateByName(db, '', alias);
      if (holder && holder.templateId !== templateId) throw new AtollError('conflict', `The public name "${alias}" is taken by another template`);
      if (!holder) await nameTemplate(db, { namespace: '', alias, templateId, nowUs: app.clock() });
    }
  });
  return { before: template, names: await shownNames(app, templateId) };
}

/** Deletes a template with its builds and answers what it was. Throws `invalid` while sandboxes come from it, `forbidden`, `not_found`. */
export async function deleteTemplate(app: App, team: TeamRecord, text: string): Promise<TemplateRecord> {
  const { template } = await ownTemplate(app, team, text, 'templateID');
  const { templateId } = template;
  const sandboxes = await sandboxesOfTemplate(app.store.db, templateId);
  if (sandboxes > 0) throw new AtollError('invalid', `Template "${text}" can't be deleted: ${sandboxes} running or paused sandboxes were made from it`);
  await cancelBuildsOf(app, { templateId }, 'The template was deleted');
  await deleteTemplateRow(app.store.db, templateId);
  return template;
}
