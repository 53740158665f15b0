import { AtollError } from '../../../base/error.ts';
import type { BuildState, BuildStep } from '../../../protocol/build.ts';
import type { CommandWork } from '../build.ts';
import { lookInto } from './look-into.ts';
import { runForLayer } from '../sandbox/run-for-layer.ts';
import { readScript } from '../scripts/read-script.ts';

/** The user that a USER step names: `[name, "true"?]`. */
export function userOf(step: BuildStep): { name: string; admin: boolean } {
  const [name, admin = ''] = step.args;
  if (name === undefined || !/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_.-]*)?$/.test(name))
    throw new AtollError('invalid', `${name ?? 'nothing'} can't be the name of a user`);
  // Dockerfiles write the group after a colon; commands here run with the user's own groups.
  return { name: name.split(':')[0] ?? name, admin: admin === 'true' };
}

/** Makes the layer in which the user exists; if asked, as an administrator without a password. */
export async function userLayer(
  build: CommandWork,
  state: BuildState,
  user: { name: string; admin: boolean },
): Promise<string | null> {
  if (!user.admin && (await lookInto(build, state, { user: user.name })).user.known) return null;
  const script = readScript('ensure-user.sh');
  const argv: [string, ...string[]] = ['/bin/sh', '-c', script, 'ensure-user', user.name, user.admin ? 'admin' : ''];
  return runForLayer(build, state, { argv, shown: `USER ${user.name}`, user: 'root', env: {}, cwd: '/' });
}
