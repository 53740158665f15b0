import { AtollError } from '../../../base/error.ts';
import { joinPath, withoutSlash } from '../../../base/join-path.ts';
import type { BuildState, BuildStep } from '../../../protocol/build.ts';
import type { LayerWork } from '../build.ts';
import { makeLayer } from '../../layers/make.ts';
import { openView } from '../../layers/view.ts';

/** The directory that a WORKDIR step names. */
export function workdirOf(state: BuildState, step: BuildStep): string {
  const [path] = step.args;
  if (path === undefined || path === '' || step.args.length !== 1)
    throw new AtollError('invalid', 'WORKDIR needs one path');
  return withoutSlash(joinPath(state.workdir || '/', path));
}

/**
 * Makes the layer in which the directory exists: existing directories stay as they are; new ones belong to the current
 * user.
 */
export async function workdirLayer(build: LayerWork, state: BuildState, path: string): Promise<string | null> {
  const { limits, signal } = build;
  await using view = await openView(build, state.layers);
  return await makeLayer(build, {
    job: { kind: 'directory', path, user: state.user, limits },
    view: view.path,
    signal,
  });
}
