import { AtollError } from '../../base/error.ts';
import { newTemplateId, newUuid } from '../../base/id.ts';
import { buildBounds } from '../../protocol/api/template-build.ts';
import type { RegisterBuild } from '../../protocol/api/template-build.ts';
import { failBuilds, insertBuild } from '../store/build-write.ts';
import { openBuildCount, rivalBuilds } from '../store/build-read.ts';
import type { BuildRequest } from '../store/build-read.ts';
import type { Db } from '../store/database.ts';
import { insertTemplate, nameTemplate } from '../store/template-write.ts';
import { templateById, templateByName } from '../store/template-resolve.ts';
import type { TemplateRecord } from '../store/template-row.ts';
import type { TeamRecord } from '../store/team.ts';
import { limitsOf } from './context.ts';
import type { App } from './context.ts';
import { defaultSize } from './provision-template.ts';
import { parseTags } from './template-tags.ts';
import { defaultTag, parseReference } from './template-reference.ts';

/** What a sandbox may write beyond its template where the build does not ask for more, MiB. */
export const defaultDiskMiB = 10_240;

export type Registered = { template: TemplateRecord; buildId: string; name: string; tags: string[] };
type Sizes = { cpuCount: number; memoryMiB: number; diskMiB: number };

/**
 * Registers a build of the team's template with the asked name, which is made where it is new. Builds of the same template
 * and tags that still wait are superseded. Throws `invalid`, `conflict`, `rate_limited`.
 */
export async function registerBuild(app: App, team: TeamRecord, asked: RegisterBuild & { request?: BuildRequest }): Promise<Registered> {
  const text = asked.name ?? asked.alias;
  if (text === undefined || text.trim() === '') throw new AtollError('invalid', 'name: is required');
  if (asked.teamID !== undefined && asked.teamID !== team.teamId) throw new AtollError('invalid', 'teamID: is not the team of the credential');
  const { namespace, name, tag } = parseReference(text, 'name');
  if (namespace !== null && namespace !== team.slug) throw new AtollError('invalid', `name: the namespace "${namespace}" is not your team's ("${team.slug}")`);
  const wanted = parseTags([...(tag === null ? [] : [tag]), ...(asked.tags ?? [])]);
  const tags = wanted.length > 0 ? wanted : [defaultTag];
  const sizes = sizesOf(app, team, asked);
  await refuseTooMany(app, team);
  return app.store.db.transaction().execute(async db => {
    const template = await templateNamed(app, db, team, name);
    const buildId = await addBuild(app, db, template.templateId, { ...sizes, tags, ...(asked.request && { request: asked.request }) });
    return { template, buildId, name, tags };
  });
}

/** Adds a build to a template that is there already, by ID. */
export async function registerBuildOf(app: App, team: TeamRecord, template: TemplateRecord, asked: RegisterBuild & { request?: BuildRequest }): Promise<Registered> {
  const sizes = sizesOf(app, team, asked);
  await refuseTooMany(app, team);
  const tags = [defaultTag];
  const buildId = await app.store.db.transaction().execute(db => addBuild(app, db, template.templateId, { ...sizes, tags, ...(asked.request && { request: asked.request }) }));
  return { template, buildId, name: '', tags };
}

async function addBuild(app: App, db: Db, templateId: string, build: Sizes & { tags: string[]; request?: BuildRequest }): Promise<string> {
  const buildId = newUuid();
  const nowUs = app.clock();
  await insertBuild(db, { ...build, buildId, templateId, nowUs });
  await failBuilds(db, await rivalBuilds(db, { templateId, buildId }, ['waiting']), { message: 'A newer build of the same template and tags was registered' }, nowUs);
  return buildId;
}

async function templateNamed(app: App, db: Db, team: TeamRecord, name: string): Promise<TemplateRecord> {
  const known = await templateByName(db, team.slug, name);
  if (known) return known;
  if (await templateById(db, name)) throw new AtollError('conflict', `name: "${name}" is the ID of a template`);
  const templateId = newTemplateId();
  const nowUs = app.clock();
  await insertTemplate(db, { templateId, teamId: team.teamId, kind: 'template', public: false, nowUs });
  await nameTemplate(db, { namespace: team.slug, alias: name, templateId, nowUs });
  const made = await templateById(db, templateId);
  if (!made) throw new AtollError('internal', 'the new template is not there');
  return made;
}

async function refuseTooMany(app: App, team: TeamRecord): Promise<void> {
  const limit = limitsOf(app, team).concurrentBuilds;
  if ((await openBuildCount(app.store.db, team.teamId)) >= limit) {
    throw new AtollError('rate_limited', `The team has ${limit} builds running, which is its limit: wait until one has ended`);
  }
}

function sizesOf(app: App, team: TeamRecord, asked: RegisterBuild): Sizes {
  const limits = limitsOf(app, team);
  const cpuCount = asked.cpuCount ?? Math.min(defaultSize.cpuCount, limits.cpuCount);
  const memoryMiB = asked.memoryMB ?? Math.min(defaultSize.memoryMiB, limits.memoryMiB);
  const diskMiB = Math.max(asked.minFreeDiskMb ?? 0, Math.min(defaultDiskMiB, limits.diskMiB));
  if (cpuCount !== 1 && cpuCount % 2 !== 0) throw new AtollError('invalid', 'cpuCount: must be 1 or an even number');
  if (cpuCount > limits.cpuCount) throw new AtollError('invalid', `cpuCount: the team may use up to ${limits.cpuCount}`);
  if (memoryMiB % 2 !== 0 || memoryMiB < buildBounds.memoryMiBMin) throw new AtollError('invalid', `memoryMB: must be an even number from ${buildBounds.memoryMiBMin} on`);
  if (memoryMiB > limits.memoryMiB) throw new AtollError('invalid', `memoryMB: the team may use up to ${limits.memoryMiB}`);
  if (diskMiB > limits.diskMiB) throw new AtollError('invalid', `minFreeDiskMb: the team may use up to ${limits.diskMiB}`);
  return { cpuCount, memoryMiB, diskMiB };
}
