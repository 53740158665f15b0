import { AtollError } from '../../../base/error.ts';
import { newTemplateId } from '../../../base/id.ts';
import { insertTemplate, nameTemplate } from '../store/write.ts';
import { templateById, templateByName } from '../store/resolve.ts';
import type { TemplateRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';

/** The public template with this alias, without a namespace; made, still without a build, if the alias is new. */
export async function ensurePublicTemplate(
  { clock, db }: { clock: Clock; db: Db },
  owner: TeamRecord,
  alias: string,
): Promise<TemplateRecord> {
  return db.transaction().execute(async db => {
    const known = await templateByName(db, '', alias);
    if (known) return known;
    const templateId = newTemplateId();
    const nowUs = clock();
    await insertTemplate(db, { templateId, teamId: owner.teamId, kind: 'template', public: true, nowUs });
    await nameTemplate(db, { namespace: '', alias, templateId, nowUs });
    const made = await templateById(db, templateId);
    if (!made) throw new AtollError('internal', 'the new template is not there');
    return made;
  });
}
