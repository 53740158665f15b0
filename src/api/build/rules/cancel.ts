import { AtollError } from '../../../base/error.ts';
import { findBuild } from '../store/read.ts';
import { cancelBuilds } from './follow.ts';
import type { BuildDetail } from '../record.ts';
import type { CancelDeps } from './follow.ts';

/**
 * Ends one of the caller's builds. One that failed or was cancelled before stays as it is. Throws `conflict` for one
 * that is ready: sandboxes may have started from it.
 */
export async function cancelBuild(deps: CancelDeps, { buildId }: Pick<BuildDetail, 'buildId'>): Promise<void> {
  // The store decides which came first: the cancel, or the end of the build.
  await cancelBuilds(deps, [buildId], 'Cancelled');
  const build = await findBuild(deps.db, buildId);
  if (build?.status === 'ready')
    throw new AtollError('conflict', `Build ${buildId} is ready: delete the template, or move its tags`);
}
