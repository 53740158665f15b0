import { newTemplateId, newUuid } from '../../../src/base/id.ts';
import type { Clock } from '../../../src/base/clock.ts';
import type { BuildConfig } from '../../../src/api/build/record.ts';
import type { Db } from '../../../src/api/database/db.ts';
import type { TeamRecord } from '../../../src/api/team/record.ts';
import { defaultTag } from '../../../src/api/template/rules/reference.ts';
import { taggedBuild, templateByName } from '../../../src/api/template/store/resolve.ts';
import { addReadyBuild, insertTemplate, nameTemplate } from '../../../src/api/template/store/write.ts';
import { agentVersion } from '../../../src/protocol/agent.ts';

/** A template that no builder has made. */
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
 * Writes a template that no builder has made, as the newest ready build of its alias; creates the template if the alias
 * is new. The same layers again change nothing. Answers the IDs.
 */
export async function registerTemplate(
  { clock, db }: { clock: Clock; db: Db },
  owner: Pick<TeamRecord, 'teamId'>,
  { alias, public: isPublic, ...content }: TemplateRegistration,
): Promise<{ templateId: string; buildId: string }> {
  const nowUs = clock();
  return db.transaction().execute(async db => {
    const known = await templateByName(db, '', alias);
    const templateId = known?.templateId ?? newTemplateId();
    if (!known) {
      await insertTemplate(db, { templateId, teamId: owner.teamId, kind: 'template', public: isPublic, nowUs });
      await nameTemplate(db, { namespace: '', alias, templateId, nowUs });
    }
    const present = await taggedBuild(db, templateId, defaultTag);
    if (present && present.layers.join() === content.layers.join()) return { templateId, buildId: present.buildId };
    const buildId = newUuid();
    const build = { buildId, templateId, agentVersion, ...content };
    await addReadyBuild(db, build, { sandboxId: null, tag: defaultTag, nowUs });
    return { templateId, buildId };
  });
}
