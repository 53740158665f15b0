import { counted } from '../../../base/counted.ts';
import { AtollError } from '../../../base/error.ts';
import type { StartBuildV2 } from '../../../protocol/api/template-build.ts';
import type { BuildSource, BuildStep, StartBuild } from '../../../protocol/build.ts';
import { rivalBuilds } from '../store/read.ts';
import { beginBuild, moveBuild } from '../store/write.ts';
import { namesOf } from '../../template/store/resolve.ts';
import { type AwaitDeps, resolveAwaitedBuild } from './awaited.ts';
import { cancelBuilds, followBuild } from './follow.ts';
import { namedDriver } from '../../template/rules/driver.ts';
import type { BuildDetail } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { FollowDeps } from './follow.ts';
import type { LimitsOf } from '../../team/rules/limits.ts';
import type { TemplateDrivers } from '../../template/rules/driver.ts';

/** Dependencies of starting a build. */
export type StartDeps = FollowDeps & { limitsOf: LimitsOf; templateDrivers: TemplateDrivers };

/** The work of a build. */
export type BuildPlan = Pick<
  StartBuild,
  'source' | 'steps' | 'force' | 'startsAsUser' | 'startCommand' | 'readyCommand' | 'driver'
>;

/** Starts a waiting build. It is `building` when this answers. Throws `invalid`, `rate_limited`, `unavailable`. */
export async function startBuild(
  deps: StartDeps,
  team: TeamRecord,
  build: BuildDetail,
  plan: BuildPlan,
): Promise<void> {
  const { buildId, templateId } = build;
  const { db } = deps;
  const rivals = await rivalBuilds(db, { templateId, buildId }, ['building']);
  const concurrentMax = deps.limitsOf(team).concurrentBuilds;
  const begun = await beginBuild(
    deps.db,
    { buildId, teamId: team.teamId, replicaId: deps.busy.replicaId },
    { concurrentMax, rivals, nowUs: deps.clock() },
  );
  if (begun === 'full')
    throw new AtollError(
      'rate_limited',
      `The team has ${counted(concurrentMax, 'build')} running, which is its limit: wait until one has ended`,
    );
  if (!begun)
    throw new AtollError('invalid', `Build ${buildId} can't be started: it was started before or is superseded`);
  try {
    await cancelBuilds(deps, rivals, 'A newer build of the same template and tags was started');
    const resources = { cpuCount: build.cpuCount, memoryMiB: build.memoryMiB, diskMiB: build.diskMiB };
    const driver = namedDriver(deps.templateDrivers, templateId, await namesOf(db, templateId));
    await deps.builder.start({
      buildId,
      templateId,
      teamId: team.teamId,
      resources,
      ...(driver && { driver }),
      ...plan,
    });
  } catch (error) {
    // Nothing runs: the build may be started again.
    await moveBuild(db, buildId, 'building', 'waiting', deps.clock());
    throw error;
  }
  followBuild(deps, buildId);
}

/** The plan in the steps of the newer clients. Throws `invalid`, `not_found`. */
export async function planOfSteps(
  deps: AwaitDeps,
  team: TeamRecord,
  body: StartBuildV2,
  userAgent: string,
): Promise<BuildPlan> {
  const steps: BuildStep[] = (body.steps ?? []).map(step => ({
    type: step.type,
    args: step.args ?? [],
    force: step.force ?? false,
    ...(step.filesHash !== undefined && { filesHash: step.filesHash }),
  }));
  return {
    source: await sourceOf(deps, team, body),
    steps,
    force: body.force ?? false,
    startsAsUser: !isOldSdk(userAgent),
    ...(body.startCmd && { startCommand: body.startCmd }),
    ...(body.readyCmd && { readyCommand: body.readyCmd }),
  };
}

async function sourceOf(deps: AwaitDeps, team: TeamRecord, body: StartBuildV2): Promise<BuildSource> {
  const { fromImage = '', fromTemplate = '', fromImageRegistry } = body;
  if ((fromImage === '') === (fromTemplate === ''))
    throw new AtollError('invalid', 'fromImage, fromTemplate: exactly one of them is needed');
  const standIn = templateOfImage(fromImage);
  if (standIn !== undefined && !fromImageRegistry) return standingIn(deps, team, standIn, fromImage);
  if (fromTemplate === '')
    return { kind: 'image', reference: fromImage, ...(fromImageRegistry && { credential: fromImageRegistry }) };
  const { build } = await resolveAwaitedBuild(deps, team, fromTemplate);
  const { buildEnv, defaultUser, defaultWorkdir } = build.config;
  return { kind: 'state', state: { layers: build.layers, env: buildEnv, user: defaultUser, workdir: defaultWorkdir } };
}

/** The clients' own base images, and the templates that are equivalent here. */
const imageTemplates: Record<string, string> = {
  'e2bdev/base': 'base',
  'e2bdev/code-interpreter': 'code-interpreter-v1',
};

/** The template that stands in for an image of this name. */
export function templateOfImage(reference: string): string | undefined {
  return imageTemplates[reference.replace(/^docker\.io\//, '').replace(/:[\w.-]+$/, '')];
}

/** A template in place of an image: its files and, as with any image, user root and no working directory. */
export async function standingIn(
  deps: AwaitDeps,
  team: TeamRecord,
  name: string,
  reference: string,
): Promise<BuildSource> {
  const found = await resolveAwaitedBuild(deps, team, name).catch((error: unknown) => {
    if (error instanceof AtollError && error.code === 'not_found') return null;
    throw error;
  });
  if (!found) return { kind: 'image', reference };
  return {
    kind: 'state',
    state: { layers: found.build.layers, env: found.build.config.buildEnv, user: 'root', workdir: '' },
  };
}

/** SDKs below 2.3.0 expect steps to run as root. */
function isOldSdk(userAgent: string): boolean {
  const [, major, minor] = /\be2b-(?:js|python)-sdk\/(\d+)\.(\d+)\./.exec(userAgent) ?? [];
  if (major === undefined) return false;
  return Number(major) < 2 || (Number(major) === 2 && Number(minor) < 3);
}
