import type { BusyExecutions } from '../../sandbox/rules/busy.ts';
import type { SingleFlight } from '../../../base/concurrency/single-flight.ts';
import { AtollError, messageOf } from '../../../base/error.ts';
import { agentVersion } from '../../../protocol/agent.ts';
import type { BuildResult } from '../../../protocol/build.ts';
import { appendBuildLog, buildLogLength } from '../store/log.ts';
import { buildsEndedSince, buildsInStatus, findBuild } from '../store/read.ts';
import { pruneLogs } from './retention.ts';
import { claimBuild, failBuilds, publishBuild } from '../store/write.ts';
import { templateById } from '../../template/store/resolve.ts';
import type { Db } from '../../database/db.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Measures } from '../../metrics/measures.ts';
import type { BuildProtocol } from '../../../protocol/build.ts';

/** Dependencies of ending builds. */
export type CancelDeps = { builder: BuildProtocol; clock: Clock; db: Db };

/** Dependencies of taking over the log and outcome of a build. */
export type FollowDeps = CancelDeps & {
  followedBuilds: SingleFlight<string, void>;
  busy: Pick<BusyExecutions, 'replicaId'>;
  log: Log;
  measures: Measures;
  stopping: AbortSignal;
};

/** How long the node may hold a request for more of the log, ms. */
const pollWaitMs = 2_000;
/** Pause between two writes of the log: a build with much output must not keep the database busy. */
const writePauseMs = 100;
const retryPauseMs = 1_000;
/** How often a node that does not answer is asked again before its builds are given up. */
const retriesMax = 30;
/** How long a node may be asked for the end of a build that has ended; after that it is told to forget it. */
const lateEndSeconds = 60;

/**
 * Takes over a build's log and outcome from the node until the build has ended: once, however often it is requested,
 * and not where another process does so. A build that its node does not know ended with the node's process.
 */
export function followBuild(deps: FollowDeps, buildId: string): void {
  void deps.followedBuilds.run(buildId, () =>
    follow(deps, buildId).catch((error: unknown) =>
      deps.log.error('a build could not be followed to its end', { buildId, error: messageOf(error) }),
    ),
  );
}

async function follow(deps: FollowDeps, buildId: string): Promise<void> {
  const { db } = deps;
  if (!(await claimBuild(db, buildId, { ownId: deps.busy.replicaId, nowUs: deps.clock() }))) {
    if (await isDeleted(db, buildId)) await drop(deps, buildId);
    return;
  }
  const startMs = performance.now();
  let next = await buildLogLength(db, buildId);
  for (let failures = 0; !deps.stopping.aborted;) {
    try {
      const progress = await deps.builder.progress(buildId, next, pollWaitMs);
      await appendBuildLog(db, buildId, next, progress.entries);
      next = progress.next;
      if (progress.result) {
        await end(deps, buildId, progress.result);
        await forgetOldLogs(deps, buildId);
        deps.measures.build(progress.result.status, (performance.now() - startMs) / 1000);
        await deps.builder.forget(buildId);
        return;
      }
      failures = 0;
    } catch (error) {
      if (error instanceof AtollError && error.code === 'not_found') {
        return await failBuilds(
          db,
          [buildId],
          { message: 'The platform was restarted while the build ran; start it again' },
          deps.clock(),
        );
      }
      if (await isDeleted(db, buildId)) return await drop(deps, buildId);
      if (++failures > retriesMax) throw error;
      await Bun.sleep(retryPauseMs);
    }
    await Bun.sleep(writePauseMs);
  }
}

/** Whether a build was deleted with its template. False where the database can't be asked. */
async function isDeleted(db: Db, buildId: string): Promise<boolean> {
  return findBuild(db, buildId).then(
    build => build === null,
    () => false,
  );
}

/** Ends a build that was deleted with its template before its node heard of that. */
async function drop({ builder }: CancelDeps, buildId: string): Promise<void> {
  await builder.cancel(buildId, 'The template was deleted');
  await builder.forget(buildId);
}

/** A log is long: logs of earlier builds make room at once, and not only at the next round. */
async function forgetOldLogs(deps: { clock: Clock; db: Db }, buildId: string): Promise<void> {
  const build = await findBuild(deps.db, buildId);
  const template = build && (await templateById(deps.db, build.templateId));
  if (template) await pruneLogs(deps, template.teamId);
}

async function end({ clock, db }: { clock: Clock; db: Db }, buildId: string, result: BuildResult): Promise<void> {
  if (result.status === 'error') {
    const reason = { message: result.message, ...(result.step !== undefined && { step: result.step }) };
    return failBuilds(db, [buildId], reason, clock());
  }
  const { state, startCommand, readyCommand, started } = result;
  const build = await findBuild(db, buildId);
  if (!build) return; // its template was deleted
  const config = {
    defaultUser: state.user,
    defaultWorkdir: state.workdir,
    buildEnv: state.env,
    ...(startCommand !== undefined && { startCommand }),
    ...(readyCommand !== undefined && { readyCommand }),
    ...(started !== undefined && { started }),
  };
  await publishBuild(db, buildId, { layers: state.layers, config, agentVersion, diskMiB: build.diskMiB }, clock());
}

/** Ends builds that wait or run, of a template or of a whole team. Answers how many. */
export async function cancelBuildsOf(
  deps: CancelDeps,
  of: { templateId: string } | { teamId: string },
  reason: string,
): Promise<number> {
  const { db } = deps;
  const open = await buildsInStatus(db, ['waiting', 'building']);
  const meant: string[] = [];
  for (const build of open) {
    const matches =
      'templateId' in of
        ? build.templateId === of.templateId
        : (await templateById(db, build.templateId))?.teamId === of.teamId;
    if (matches) meant.push(build.buildId);
  }
  await cancelBuilds(deps, meant, reason);
  return meant.length;
}

/** Ends builds that wait or run, in the store and on the node. Other builds stay as they are. */
export async function cancelBuilds(
  { builder, clock, db }: CancelDeps,
  buildIds: readonly string[],
  reason: string,
): Promise<void> {
  await failBuilds(db, buildIds, { message: reason }, clock());
  await Promise.all(buildIds.map(buildId => builder.cancel(buildId, reason)));
}

/**
 * Tells the nodes to forget the builds of a template that is about to be deleted: afterwards nobody knows which node
 * has the log. A node that does not answer keeps it until its process ends.
 */
export async function forgetBuildsOf({ builder, clock, db }: CancelDeps, templateId: string): Promise<void> {
  const ended = await buildsEndedSince(db, templateId, clock() - lateEndSeconds * microsPerSecond);
  await Promise.allSettled(ended.map(buildId => builder.forget(buildId)));
}

/** Follows every build that is under way; after a start, these are the builds of the last run. */
export async function reconcileBuilds(deps: FollowDeps): Promise<void> {
  for (const { buildId } of await buildsInStatus(deps.db, ['building'])) followBuild(deps, buildId);
}
