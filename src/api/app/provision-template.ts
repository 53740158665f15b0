import { AtollError } from '../../base/error.ts';
import { newTemplateId, newUuid } from '../../base/id.ts';
import { agentVersion } from '../../protocol/agent.ts';
import { insertReadyBuild, insertTemplate, nameTemplate } from '../store/template-write.ts';
import { templateById, templateByName } from '../store/template-resolve.ts';
import type { BuildConfig, TemplateRecord } from '../store/template-row.ts';
import type { TeamRecord } from '../store/team.ts';
import type { App } from './context.ts';
import { defaultTag } from './template-reference.ts';

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

/** The size of a template's sandboxes where nobody says otherwise. */
export const defaultSize = { cpuCount: 2, memoryMiB: 1024 } as const;

/**
 * Registers a template that was made outside the builder, as the newest ready build of its alias; the template is made
 * when the alias is new. The same layers and settings again change nothing. Answers the IDs.
 */
export async function registerTemplate(
  app: App,
  owner: TeamRecord,
  registration: TemplateRegistration,
): Promise<{ templateId: string; buildId: string }> {
  const nowUs = app.clock();
  return app.store.db.transaction().execute(async db => {
    const known = await templateByName(db, '', registration.alias);
    const templateId = known?.templateId ?? newTemplateId();
    if (!known) {
      await insertTemplate(db, { templateId, teamId: owner.teamId, kind: 'template', public: registration.public, nowUs });
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
export async function ensurePublicTemplate(app: App, owner: TeamRecord, alias: string): Promise<TemplateRecord> {
  return app.store.db.transaction().execute(async db => {
    const known = await templateByName(db, '', alias);
    if (known) return known;
    const templateId = newTemplateId();
    const nowUs = app.clock();
    await insertTemplate(db, { templateId, teamId: owner.teamId, kind: 'template', public: true, nowUs });
    await nameTemplate(db, { namespace: '', alias, templateId, nowUs });
    const made = await templateById(db, templateId);
    if (!made) throw new AtollError('internal', 'the new template is not there');
    return made;
  });
}
