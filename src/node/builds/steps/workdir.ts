import { AtollError } from '../../../base/error.ts';
import type { BuildState, BuildStep } from '../../../protocol/build.ts';
import { readAccounts } from '../accounts.ts';
import type { BuildContext } from '../build-context.ts';
import { bytesOf, makeLayer } from '../layer/make-layer.ts';
import { openView } from '../view.ts';
import { currentAccount, joinPath } from './paths.ts';

/** The directory that a WORKDIR step means. */
export function workdirOf(state: BuildState, step: BuildStep): string {
  const [path] = step.args;
  if (path === undefined || path === '' || step.args.length !== 1) throw new AtollError('invalid', 'WORKDIR needs one path');
  return joinPath(state.workdir || '/', path).replace(/(.)\/+$/, '$1');
}

/** The layer in which the directory exists: what is there is left as it is, what is made belongs to the current user. */
export async function workdirLayer(context: BuildContext, state: BuildState, path: string): Promise<string | null> {
  await using view = await openView(context.node, state.layers);
  const { uid, gid } = currentAccount(readAccounts(view.path), state.user);
  const job = { kind: 'directory', view: bytesOf(view.path), path: bytesOf(path), owner: { uid, gid } } as const;
  return await makeLayer(context.node, { job, limits: context.limits, signal: context.signal });
}
