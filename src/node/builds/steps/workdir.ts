import { AtollError } from '../../../base/error.ts';
import { joinPath, withoutSlash } from '../../../base/join-path.ts';
import type { BuildState, BuildStep } from '../../../protocol/build.ts';
import type { BuildContext } from '../build-context.ts';
import { makeLayer } from '../make-layer.ts';
import { openView } from '../view.ts';

/** The directory that a WORKDIR step means. */
export function workdirOf(state: BuildState, step: BuildStep): string {
  const [path] = step.args;
  if (path === undefined || path === '' || step.args.length !== 1) throw new AtollError('invalid', 'WORKDIR needs one path');
  return withoutSlash(joinPath(state.workdir || '/', path));
}

/** The layer in which the directory exists: what is there is left as it is, what is made belongs to the current user. */
export async function workdirLayer({ node, limits, signal }: BuildContext, state: BuildState, path: string): Promise<string | null> {
  await using view = await openView(node, state.layers);
  return await makeLayer(node, { job: { kind: 'directory', path, user: state.user, limits }, view: view.path, signal });
}
