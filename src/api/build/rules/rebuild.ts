import { AtollError } from '../../../base/error.ts';
import type { BuildState } from '../../../protocol/build.ts';
import { createFairSemaphore } from '../../../base/concurrency/fair-semaphore.ts';
import { findBuild } from '../store/read.ts';
import { unnameTemplate } from '../../template/store/change.ts';
import { namesOf } from '../../template/store/list.ts';
import { nameTemplate } from '../../template/store/write.ts';
import { templateByName } from '../../template/store/resolve.ts';
import { registerBuild, registerBuildOf } from './register.ts';
import type { AskedBuild, Registered } from './register.ts';
import { standingIn, startBuild, templateOfImage } from './start.ts';
import type { BuildPlan } from './start.ts';
import { lockTeam } from '../../team/store/lock.ts';
import { parseReference } from '../../template/rules/reference.ts';
import { ownTemplate } from '../../template/rules/tags.ts';
import type { BuildRequest } from '../record.ts';
import type { TemplateRecord } from '../../template/record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Clock } from '../../../base/clock.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { AwaitDeps } from './awaited.ts';
import type { StartDeps } from './start.ts';
import type { BuildProtocol } from '../../../protocol/build.ts';

/**
 * Dockerfiles read at a time, each by a program of its own; in addition, each team that has none under way may have
 * one. All readers of strangers' bytes share memory and processor time, also with running builds.
 */
const readsAtOnce = 4;
const spareReads = 2;
const reads = createFairSemaphore(readsAtOnce, spareReads);

/**
 * Registers a build from a Dockerfile, of an existing template or, without `text`, of a new one. An existing template's
 * build starts at once: no further request follows. Throws `invalid`, `not_found`, `forbidden`, `conflict`,
 * `rate_limited`, `unavailable`.
 */
export async function rebuildTemplate(
  deps: StartDeps & AwaitDeps,
  team: TeamRecord,
  text: string | null,
  asked: Pick<AskedBuild, 'name' | 'cpuCount' | 'memoryMiB'>,
  request: BuildRequest,
): Promise<Registered> {
  const plan = await planOfDockerfile(deps, team, request);
  const { name: alias, ...sizes } = asked;
  if (text === null) {
    const name = alias ?? `template-${Bun.hash(request.dockerfile).toString(36)}`;
    return registerBuild(deps, team, { ...sizes, name, request });
  }
  const { template } = await ownTemplate(deps.db, team, text, 'templateID');
  const renaming = alias === undefined ? null : renamingOf(deps.clock, team, template, alias);
  const registered = await registerBuildOf(deps, team, template, { ...sizes, request }, renaming?.rename);
  const build = await findBuild(deps.db, registered.buildId);
  try {
    if (build) await startBuild(deps, team, build, plan);
  } catch (error) {
    if (renaming) await inTransaction(deps.db, db => takeBack(db, team, registered.buildId, renaming.undo));
    throw error;
  }
  return registered;
}

/** A build that no longer waits was replaced by a newer one, which may own the name by now. */
async function takeBack(db: Db, { teamId }: TeamRecord, buildId: string, undo: (db: Db) => Promise<void>) {
  await lockTeam(db, teamId);
  if ((await findBuild(db, buildId))?.status === 'waiting') await undo(db);
}

/** The plan in a Dockerfile. Throws `invalid` with the line for anything that can't be built. */
export async function planOfDockerfile(
  deps: AwaitDeps & { builder: BuildProtocol },
  team: TeamRecord,
  request: BuildRequest,
): Promise<BuildPlan> {
  const stages = await reads.run(team.teamId, () => deps.builder.readDockerfile(request.dockerfile));
  const names = stages.flatMap(stage => [
    stage.from,
    ...stage.instructions.flatMap(instruction => (instruction.kind === 'copy' ? [instruction.from] : [])),
  ]);
  const templates: Record<string, BuildState> = {};
  for (const name of new Set(names)) {
    const template = templateOfImage(name);
    const source = template === undefined ? undefined : await standingIn(deps, team, template, name);
    if (source?.kind === 'state') templates[name] = source.state;
  }
  return {
    source: { kind: 'dockerfile', stages, templates },
    steps: [],
    force: false,
    startsAsUser: false,
    ...(request.startCmd !== undefined && { startCommand: request.startCmd }),
    ...(request.readyCmd !== undefined && { readyCommand: request.readyCmd }),
  };
}

/**
 * Moves the template's name in the team's namespace, and back. Throws `invalid`; `rename` throws `conflict` where
 * another template has the name, `undo` respects what others have done with it meanwhile. Both take a transaction.
 */
function renamingOf(clock: Clock, team: TeamRecord, { templateId }: TemplateRecord, text: string) {
  const namespace = team.slug;
  const { name: alias } = parseReference(text, 'alias');
  const before: string[] = [];
  let isRenamed = false;
  return {
    async rename(db: Db): Promise<void> {
      const holder = await templateByName(db, namespace, alias);
      if (holder?.templateId === templateId) return;
      if (holder) throw new AtollError('conflict', `alias: "${alias}" is the name of another template`);
      for (const old of (await namesOf(db, [templateId])).get(templateId) ?? []) {
        if (old.namespace !== namespace) continue;
        before.push(old.alias);
        await unnameTemplate(db, old);
      }
      await nameTemplate(db, { namespace, alias, templateId, nowUs: clock() });
      isRenamed = true;
    },
    async undo(db: Db): Promise<void> {
      if (!isRenamed || (await templateByName(db, namespace, alias))?.templateId !== templateId) return;
      await unnameTemplate(db, { namespace, alias });
      for (const old of before)
        if (!(await templateByName(db, namespace, old)))
          await nameTemplate(db, { namespace, alias: old, templateId, nowUs: clock() });
    },
  };
}
