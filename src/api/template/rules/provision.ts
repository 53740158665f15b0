import { AtollError } from '../../../base/error.ts';
import { newTemplateId, newUuid } from '../../../base/id.ts';
import { agentVersion } from '../../../protocol/agent.ts';
import { insertReadyBuild, insertTemplate, nameTemplate } from '../store/write.ts';
import { templateById, templateByName } from '../store/resolve.ts';
import { defaultTag } from './reference.ts';
import type { BuildConfig } from '../../build/record.ts';
import type { TemplateRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';

/** A template that was made outside the builder. */
export type TemplateRegistration = {
  /** An alias without namespace, such as `base`: found by every team when the template is public. */
  alias: string;
  public: boolean;
  /** Layer digests, lowest first. */
  layers: string[];
  cpuCount: number;
  memoryMiB: number;
  diskMiB: number;
  config: BuildConfig;
};

/**
 * Registers a template that was made outside the builder, as the newest ready build of its alias; the template is made
 * when the alias is new. The same layers and settings again change nothing. Answers the IDs.
 */
export async function registerTemplate(
  { clock, db }: { clock: Clock; db: Db },
  owner: TeamRecord,
  registration: TemplateRegistration,
): Promise<{ templateId: string; buildId: string }> {
  const nowUs = clock();
  return db.transaction().execute(async db => {
    const known = await templateByName(db, '', registration.alias);
    const templateId = known?.templateId ?? newTemplateId();
    if (!known) {
      await insertTemplate(db, {
        templateId,
        teamId: owner.teamId,
        kind: 'template',
        public: registration.public,
        nowUs,
      });
      await nameTemplate(db, { namespace: '', alias: registration.alias, templateId, nowUs });
    }
    const build = {
      buildId: newUuid(),
      templateId,
      cpuCount: registration.cpuCount,
      memoryMiB: registration.memoryMiB,
      diskMiB: registration.diskMiB,
      agentVersion,
      layers: registration.layers,
      config: registration.config,
    };
    return { templateId, buildId: await insertReadyBuild(db, build, defaultTag, nowUs) };
  });
}

/** The public template with this alias, without namespace; made, still without a build, where the alias is new. */
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
