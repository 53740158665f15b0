import { AtollError } from '../../../base/error.ts';
import { namesOf } from '../store/list.ts';
import { deleteTemplateRow, sandboxesOfTemplate, setTemplatePublic, type TemplateUsers } from '../store/change.ts';
import { templateByName } from '../store/resolve.ts';
import { nameTemplate } from '../store/write.ts';
import { cancelBuildsOf, forgetBuildsOf } from '../../build/rules/follow.ts';
import { firstTeam } from '../../team/rules/first-team.ts';
import { ownTemplate, shownNames } from './tags.ts';
import type { TemplateRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import type { CancelDeps } from '../../build/rules/follow.ts';

/** Sandboxes that the error of a refused deletion names. */
const usersShownMax = 5;

/** A template as it was before a change, and its names. */
type ChangedTemplate = { before: TemplateRecord; names: string[] };

/** Changes who may use a template. Throws `invalid`, `forbidden`, `not_found`. */
export async function updateTemplate(
  { clock, db }: { clock: Clock; db: Db },
  team: TeamRecord,
  text: string,
  change: { public?: boolean },
): Promise<ChangedTemplate> {
  const { template } = await ownTemplate(db, team, text, 'templateID');
  if (change.public !== undefined) await setTemplatePublic(db, template.templateId, change.public, clock());
  return { before: template, names: await shownNames(db, template.templateId) };
}

/**
 * The same by the deprecated route: publishing also claims the names without a namespace, if the team is the
 * installation's own. Such a name is what everybody's `nginx` means, so that no other team may take one. Throws
 * `conflict` where one is taken.
 */
export async function updateTemplateV1(
  { clock, db }: { clock: Clock; db: Db },
  team: TeamRecord,
  text: string,
  change: { public?: boolean },
): Promise<ChangedTemplate> {
  const { template } = await ownTemplate(db, team, text, 'templateID');
  const { templateId } = template;
  await db.transaction().execute(async db => {
    if (change.public === undefined) return;
    await setTemplatePublic(db, templateId, change.public, clock());
    if (!change.public || team.slug !== firstTeam.slug) return;
    for (const { alias } of (await namesOf(db, [templateId])).get(templateId) ?? []) {
      const holder = await templateByName(db, '', alias);
      if (holder && holder.templateId !== templateId)
        throw new AtollError('conflict', `The public name "${alias}" is taken by another template`);
      if (!holder) await nameTemplate(db, { namespace: '', alias, templateId, nowUs: clock() });
    }
  });
  return { before: template, names: await shownNames(db, templateId) };
}

/**
 * Deletes a template with its builds and answers its earlier record. Throws `invalid` while sandboxes come from it,
 * `forbidden`, `not_found`.
 */
export async function deleteTemplate(deps: CancelDeps, team: TeamRecord, text: string): Promise<TemplateRecord> {
  const { template } = await ownTemplate(deps.db, team, text, 'templateID');
  const { templateId } = template;
  const users = usersInWords(
    await sandboxesOfTemplate(deps.db, templateId, { teamId: team.teamId, shownMax: usersShownMax }),
  );
  if (users !== null) {
    const what = template.kind === 'snapshot' ? 'Snapshot' : 'Template';
    throw new AtollError(
      'invalid',
      `${what} "${text}" can't be deleted while sandboxes that were made from it run or are paused: ${users}`,
    );
  }
  await cancelBuildsOf(deps, { templateId }, 'The template was deleted');
  await forgetBuildsOf(deps, templateId);
  await deleteTemplateRow(deps.db, templateId);
  return template;
}

/** Null where there are none. Other teams' sandboxes are not named. */
function usersInWords({ shown, more, ofOthers }: TemplateUsers): string | null {
  const parts = [
    ...shown,
    ...(more > 0 ? [`${more} more`] : []),
    ...(ofOthers > 0 ? [`${ofOthers} of other teams`] : []),
  ];
  return parts.length > 0 ? parts.join(', ') : null;
}
