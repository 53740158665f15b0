import { counted } from '../../../base/counted.ts';
import { AtollError } from '../../../base/error.ts';
import { newTemplateId, newUuid } from '../../../base/id.ts';
import { defaultSize } from '../../../protocol/default-size.ts';
import { buildBounds } from '../../../protocol/api/template-build.ts';
import { failBuilds, insertBuild } from '../store/write.ts';
import { openBuildCount, rivalBuilds } from '../store/read.ts';
import type { Db } from '../../database/db.ts';
import { insertTemplate, nameTemplate } from '../../template/store/write.ts';
import { templateById, templateByName } from '../../template/store/resolve.ts';
import { parseTags, requireTagPlaces } from '../../template/rules/tags.ts';
import { defaultTag, parseReference } from '../../template/rules/reference.ts';
import type { BuildRequest } from '../record.ts';
import type { TemplateRecord } from '../../template/record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { LimitsOf } from '../../team/rules/limits.ts';
import { lockTeam } from '../../team/store/lock.ts';
import { requireBuildPlace } from './quota.ts';
import type { Clock } from '../../../base/clock.ts';

/** Dependencies of registering a build. */
type RegisterDeps = { clock: Clock; db: Db; limitsOf: LimitsOf };

/** A requested build. The platform chooses what is left out. */
export type AskedBuild = {
  /** `[namespace/]name[:tag]`; required where the template is found by its name. */
  name?: string;
  tags?: readonly string[];
  cpuCount?: number;
  memoryMiB?: number;
  /** What a sandbox may write beyond its template. */
  freeDiskMiB?: number;
  /** The Dockerfile, where the build has one. */
  request?: BuildRequest;
};

/** A waiting build, with its template and the tags that will select it. */
export type Registered = { template: TemplateRecord; buildId: string; name: string; tags: string[] };
type Sizes = { cpuCount: number; memoryMiB: number; diskMiB: number };

/**
 * Registers a build of the team's template with the given name, which is made if it is new. Waiting builds of the same
 * template and tags are superseded. Throws `invalid`, `conflict`, `rate_limited`.
 */
export async function registerBuild(deps: RegisterDeps, team: TeamRecord, asked: AskedBuild): Promise<Registered> {
  const text = asked.name;
  if (text === undefined || text.trim() === '') throw new AtollError('invalid', 'name: is required');
  const { namespace, name, tag } = parseReference(text, 'name');
  if (namespace !== null && namespace !== team.slug)
    throw new AtollError('invalid', `name: the namespace "${namespace}" is not your team's ("${team.slug}")`);
  const wanted = parseTags([...(tag === null ? [] : [tag]), ...(asked.tags ?? [])]);
  const tags = wanted.length > 0 ? wanted : [defaultTag];
  const sizes = sizesOf(deps.limitsOf, team, asked);
  await refuseTooMany(deps, team);
  return deps.db.transaction().execute(async db => {
    await lockTeam(db, team.teamId);
    const known = await templateByName(db, team.slug, name);
    await requireBuildPlace(db, deps.limitsOf, team, known === null);
    const template = known ?? (await newTemplate(deps.clock, db, team, name));
    const buildId = await addBuild(deps.clock, db, template.templateId, {
      ...sizes,
      tags,
      ...(asked.request && { request: asked.request }),
    });
    return { template, buildId, name, tags };
  });
}

/** Adds a build to an existing template, by ID; `beside` runs in the same transaction. */
export async function registerBuildOf(
  deps: RegisterDeps,
  team: TeamRecord,
  template: TemplateRecord,
  asked: AskedBuild,
  beside: (db: Db) => Promise<void> = async () => {},
): Promise<Registered> {
  const sizes = sizesOf(deps.limitsOf, team, asked);
  await refuseTooMany(deps, team);
  const tags = [defaultTag];
  const buildId = await deps.db.transaction().execute(async db => {
    await lockTeam(db, team.teamId);
    await requireBuildPlace(db, deps.limitsOf, team, false);
    await beside(db);
    return addBuild(deps.clock, db, template.templateId, {
      ...sizes,
      tags,
      ...(asked.request && { request: asked.request }),
    });
  });
  return { template, buildId, name: '', tags };
}

async function addBuild(
  clock: Clock,
  db: Db,
  templateId: string,
  build: Sizes & { tags: string[]; request?: BuildRequest },
): Promise<string> {
  const buildId = newUuid();
  const nowUs = clock();
  await requireTagPlaces(db, templateId, build.tags);
  await insertBuild(db, { ...build, buildId, templateId, nowUs });
  await failBuilds(
    db,
    await rivalBuilds(db, { templateId, buildId }, ['waiting']),
    { message: 'A newer build of the same template and tags was registered' },
    nowUs,
  );
  return buildId;
}

async function newTemplate(clock: Clock, db: Db, team: TeamRecord, name: string): Promise<TemplateRecord> {
  if (await templateById(db, name)) throw new AtollError('conflict', `name: "${name}" is the ID of a template`);
  const templateId = newTemplateId();
  const nowUs = clock();
  await insertTemplate(db, { templateId, teamId: team.teamId, kind: 'template', public: false, nowUs });
  await nameTemplate(db, { namespace: team.slug, alias: name, templateId, nowUs });
  const made = await templateById(db, templateId);
  if (!made) throw new AtollError('internal', 'the new template is not there');
  return made;
}

async function refuseTooMany({ db, limitsOf }: { db: Db; limitsOf: LimitsOf }, team: TeamRecord): Promise<void> {
  const limit = limitsOf(team).concurrentBuilds;
  if ((await openBuildCount(db, team.teamId)) >= limit) {
    throw new AtollError(
      'rate_limited',
      `The team has ${counted(limit, 'build')} running, which is its limit: wait until one has ended`,
    );
  }
}

function sizesOf(limitsOf: LimitsOf, team: TeamRecord, asked: AskedBuild): Sizes {
  const limits = limitsOf(team);
  const cpuCount = asked.cpuCount ?? Math.min(defaultSize.cpuCount, limits.cpuCount);
  const memoryMiB = asked.memoryMiB ?? Math.min(defaultSize.memoryMiB, limits.memoryMiB);
  // For clients the free disk is a wish: they would take a refusal as a failed build.
  const diskMiB = Math.min(Math.max(asked.freeDiskMiB ?? 0, defaultSize.diskMiB), limits.diskMiB);
  if (cpuCount !== 1 && cpuCount % 2 !== 0) throw new AtollError('invalid', 'cpuCount: must be 1 or an even number');
  if (cpuCount > limits.cpuCount)
    throw new AtollError('invalid', `cpuCount: the team may use up to ${limits.cpuCount}`);
  if (memoryMiB % 2 !== 0 || memoryMiB < buildBounds.memoryMiBMin)
    throw new AtollError('invalid', `memoryMB: must be an even number from ${buildBounds.memoryMiBMin} on`);
  if (memoryMiB > limits.memoryMiB)
    throw new AtollError('invalid', `memoryMB: the team may use up to ${limits.memoryMiB}`);
  return { cpuCount, memoryMiB, diskMiB };
}
