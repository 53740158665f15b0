import type { Template, TemplateBuild, TemplateContent, TemplateWithBuilds } from '../../../protocol/api/template.ts';
import { agentVersion } from '../../../protocol/agent.ts';
import { formatTime } from '../../../base/time.ts';
import { defaultSize } from '../../../protocol/default-size.ts';
import type { ContentOfTemplate } from '../rules/content.ts';
import type { ListedTemplate } from '../rules/list.ts';
import type { TemplateName, TemplateRecord } from '../record.ts';
import type { BuildRecord } from '../../build/record.ts';

const noBuildId = '00000000-0000-0000-0000-000000000000';

/** A template in a list. */
export function templateView({ template, names, build, newestStatus, createdBy }: ListedTemplate): Template {
  return {
    templateID: template.templateId,
    buildID: build?.status === 'ready' ? build.buildId : noBuildId,
    cpuCount: build?.cpuCount ?? defaultSize.cpuCount,
    memoryMB: build?.memoryMiB ?? defaultSize.memoryMiB,
    diskSizeMB: build?.diskMiB ?? 0,
    public: template.public,
    ...namesView(names),
    ...useView(template),
    createdBy: createdBy && { id: createdBy.userId, email: createdBy.email },
    buildCount: template.buildCount,
    envdVersion: build?.agentVersion ?? agentVersion,
    buildStatus: newestStatus,
  };
}

/** A template with a page of its builds. */
export function templateWithBuildsView(
  template: TemplateRecord,
  names: TemplateName[],
  builds: BuildRecord[],
): TemplateWithBuilds {
  return {
    templateID: template.templateId,
    public: template.public,
    ...namesView(names),
    ...useView(template),
    builds: builds.map(buildView),
  };
}

/** What sandboxes of a template start from. */
export function templateContentView({ build, layers }: ContentOfTemplate): TemplateContent {
  const { defaultUser, defaultWorkdir, startCommand, readyCommand } = build.config;
  return {
    buildID: build.buildId,
    user: defaultUser,
    ...(defaultWorkdir !== '' && { workdir: defaultWorkdir }),
    ...(startCommand !== undefined && { startCommand }),
    ...(readyCommand !== undefined && { readyCommand }),
    layers: layers.map(({ digest, sizeBytes, sharedBy }) => ({
      digest,
      ...(sizeBytes !== null && { sizeBytes }),
      sharedBy: sharedBy.map(({ templateId, names }) => ({ templateID: templateId, ...namesView(names) })),
    })),
  };
}

function buildView(build: BuildRecord): TemplateBuild {
  return {
    buildID: build.buildId,
    status: build.status,
    createdAt: formatTime(build.createdAtUs),
    updatedAt: formatTime(build.updatedAtUs),
    ...(build.finishedAtUs !== null && { finishedAt: formatTime(build.finishedAtUs) }),
    cpuCount: build.cpuCount,
    memoryMB: build.memoryMiB,
    diskSizeMB: build.diskMiB,
    ...(build.agentVersion !== null && { envdVersion: build.agentVersion }),
  };
}

function namesView(names: TemplateName[]): { aliases: string[]; names: string[] } {
  return { aliases: [...new Set(names.map(({ alias }) => alias))], names: shownNames(names) };
}

/** Names in the form that clients use. */
export const shownNames = (names: readonly TemplateName[]): string[] =>
  names.map(({ namespace, alias }) => (namespace === '' ? alias : `${namespace}/${alias}`));

function useView(template: TemplateRecord): Pick<Template, 'createdAt' | 'updatedAt' | 'lastSpawnedAt' | 'spawnCount'> {
  return {
    createdAt: formatTime(template.createdAtUs),
    updatedAt: formatTime(template.updatedAtUs),
    lastSpawnedAt: template.lastSpawnedAtUs === null ? null : formatTime(template.lastSpawnedAtUs),
    spawnCount: template.spawnCount,
  };
}
