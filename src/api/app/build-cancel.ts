import { AtollError } from '../../base/error.ts';
import { findBuild, type BuildDetail } from '../store/build-read.ts';
import { cancelBuilds } from './build-follow.ts';
import type { App } from './context.ts';

/**
 * Ends a build of the caller's own. One that failed or was cancelled before stays as it is.
 * Throws `conflict` for one that is ready: sandboxes may have begun from it.
 */
export async function cancelBuild(app: App, { buildId }: Pick<BuildDetail, 'buildId'>): Promise<void> {
  // The store decides what came first: the cancel, or the end of the build.
  await cancelBuilds(app, [buildId], 'Cancelled');
  const build = await findBuild(app.store.db, buildId);
  if (build?.status === 'ready') throw new AtollError('conflict', `Build ${buildId} is ready: delete the template, or move its tags`);
}
