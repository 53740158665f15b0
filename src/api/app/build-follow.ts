import { AtollError, messageOf } from '../../base/error.ts';
import { agentVersion } from '../../protocol/agent.ts';
import type { BuildResult } from '../../protocol/build.ts';
import { appendBuildLog, buildLogLength } from '../store/build-log.ts';
import { buildsInStatus, findBuild } from '../store/build-read.ts';
import { failBuilds, publishBuild } from '../store/build-write.ts';
import { templateById } from '../store/template-resolve.ts';
import type { App } from './context.ts';

/** How long the node may keep a question for more of the log, ms. */
const pollWaitMs = 2_000;
/** Between two writes of the log: a build that says much must not keep the database busy. */
const writePauseMs = 100;
const retryPauseMs = 1_000;
/** For which a node that does not answer is asked again before its builds are given up. */
const retriesMax = 30;

/**
 * Takes over a build's log and outcome from the node until it has ended, once however often it is asked for.
 * A build that its node does not know ended with the node's process.
 */
export function followBuild(app: App, buildId: string): void {
  if (app.followedBuilds.has(buildId)) return;
  const followed = follow(app, buildId)
    .catch(error => app.log.error('a build could not be followed to its end', { buildId, error: messageOf(error) }))
    .finally(() => app.followedBuilds.delete(buildId));
  app.followedBuilds.set(buildId, followed);
}

async function follow(app: App, buildId: string): Promise<void> {
  const { db } = app.store;
  const startMs = performance.now();
  let next = await buildLogLength(db, buildId);
  for (let failures = 0; !app.stopping.aborted; ) {
    try {
      const progress = await app.builder.progress(buildId, next, pollWaitMs);
      failures = 0;
      await appendBuildLog(db, buildId, next, progress.entries);
      next = progress.next;
      if (progress.result) {
        await end(app, buildId, progress.result);
        app.measures.build(progress.result.status, (performance.now() - startMs) / 1000);
        await app.builder.forget(buildId);
        return;
      }
    } catch (error) {
      if (error instanceof AtollError && error.code === 'not_found') {
        return await failBuilds(db, [buildId], { message: 'The platform was restarted while the build ran; start it again' }, app.clock());
      }
      if (++failures > retriesMax) throw error;
      await Bun.sleep(retryPauseMs);
    }
    await Bun.sleep(writePauseMs);
  }
}

async function end(app: App, buildId: string, result: BuildResult): Promise<void> {
  const { db } = app.store;
  if (result.status === 'error') {
    const reason = { message: result.message, ...(result.step !== undefined && { step: result.step }) };
    return failBuilds(db, [buildId], reason, app.clock());
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
  await publishBuild(db, buildId, { layers: state.layers, config, agentVersion, diskMiB: build.diskMiB }, app.clock());
}

/** Ends builds that wait or run, of a template or of a whole team. Answers how many. */
export async function cancelBuildsOf(app: App, of: { templateId: string } | { teamId: string }, reason: string): Promise<number> {
  const { db } = app.store;
  const open = await buildsInStatus(db, ['waiting', 'building']);
  const meant: string[] = [];
  for (const build of open) {
    const matches = 'templateId' in of ? build.templateId === of.templateId : (await templateById(db, build.templateId))?.teamId === of.teamId;
    if (matches) meant.push(build.buildId);
  }
  await cancelBuilds(app, meant, reason);
  return meant.length;
}

export async function cancelBuilds(app: App, buildIds: readonly string[], reason: string): Promise<void> {
  await failBuilds(app.store.db, buildIds, { message: reason }, app.clock());
  await Promise.all(buildIds.map(buildId => app.builder.cancel(buildId, reason)));
}

/** Follows every build that is under way: after a start, those of the last run. */
export async function reconcileBuilds(app: App): Promise<void> {
  for (const { buildId } of await buildsInStatus(app.store.db, ['building'])) followBuild(app, buildId);
}
