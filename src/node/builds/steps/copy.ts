import { AtollError } from '../../../base/error.ts';
import type { BuildState, BuildStep } from '../../../protocol/build.ts';
import { readAccounts, type Account, type Accounts } from '../accounts.ts';
import type { BuildContext } from '../build-context.ts';
import { bytesOf, makeLayer } from '../layer/make-layer.ts';
import { openView } from '../view.ts';
import { currentAccount, joinPath } from './paths.ts';

/** The layer with the uploaded files of a COPY step: `[source, destination, owner?, mode?]`. */
export async function copyLayer(context: BuildContext, state: BuildState, step: BuildStep): Promise<string | null> {
  const { node, files, request, limits, signal } = context;
  const [source, destination, owner = '', mode = ''] = step.args;
  if (source === undefined || destination === undefined || step.args.length > 4) throw new AtollError('invalid', 'COPY needs a source and a destination');
  if (step.filesHash === undefined) throw new AtollError('invalid', 'COPY needs the hash of its files');
  const archive = files.path(request.teamId, step.filesHash);
  if (archive === undefined) throw new AtollError('not_found', `the files of COPY ${source} were not uploaded`);
  if (mode !== '' && !/^[0-7]{1,4}$/.test(mode)) throw new AtollError('invalid', `${mode} is not a mode: give up to four octal digits`);
  await using view = await openView(node, state.layers);
  const accounts = readAccounts(view.path);
  const account = currentAccount(accounts, state.user);
  const copy = {
    source: bytesOf(source),
    destination: bytesOf(joinPath(state.workdir || account.home, destination)),
    owner: ownerOf(accounts, account, owner),
    ...(mode !== '' && { mode: Number.parseInt(mode, 8) }),
  };
  return await makeLayer(node, { job: { kind: 'copy', view: bytesOf(view.path), copy }, archive, limits, signal });
}

/** `name` (with the group of that name, else the user's own), `name:group`, or numbers. */
export function ownerOf(accounts: Accounts, current: Account, owner: string): { uid: number; gid: number } {
  if (owner === '') return { uid: current.uid, gid: current.gid };
  const [name = '', group] = owner.split(':');
  const user = accounts.user(name);
  if (!user) throw new AtollError('invalid', `there is no user ${name} to own the files`);
  const gid = group === undefined || group === '' ? (accounts.groupId(name) ?? user.gid) : accounts.groupId(group);
  if (gid === undefined) throw new AtollError('invalid', `there is no group ${group} to own the files`);
  return { uid: user.uid, gid };
}
