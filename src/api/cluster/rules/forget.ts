import { AtollError } from '../../../base/error.ts';
import type { Clock } from '../../../base/clock.ts';
import { sandboxStates } from '../../../protocol/state.ts';
import type { Db } from '../../database/db.ts';
import { buildsOnNode } from '../../build/store/node.ts';
import { failBuilds } from '../../build/store/write.ts';
import type { SandboxDirectory } from '../../sandbox/directory/directory.ts';
import { sandboxesIn } from '../../sandbox/store/read.ts';
import { deleteSandbox } from '../../sandbox/store/state.ts';
import { deleteClusterNode, listClusterNodes } from '../store/nodes.ts';
import type { Authority } from './authority.ts';
import { requireCluster } from './join.ts';
import type { Machines } from './machines.ts';

/** What forgetting a machine takes. */
export type ForgetDeps = {
  authority: Authority | null;
  machines: Machines | null;
  clock: Clock;
  db: Db;
  directory: SandboxDirectory;
};

/**
 * Forgets a machine for good: its certificate is worth nothing any more, and every sandbox that is on it, running or
 * paused, is lost. Errors: `not_found`; `conflict` while it is in reach and has sandboxes, which can be moved or ended.
 */
export async function forgetNode(deps: ForgetDeps, nodeId: string): Promise<{ lost: number }> {
  requireCluster(deps.authority);
  const { db, directory } = deps;
  if (!(await listClusterNodes(db)).some(node => node.nodeId === nodeId))
    throw new AtollError('not_found', `Node "${nodeId}" was not found`);
  const left = (await sandboxesIn(db, sandboxStates)).filter(sandbox => sandbox.nodeId === nodeId);
  if (left.length > 0 && deps.machines?.usable().some(({ node }) => node.nodeId === nodeId))
    throw new AtollError(
      'conflict',
      `Node "${nodeId}" is in reach and has ${left.length} sandboxes: end them, or stop the machine first`,
    );
  await deleteClusterNode(db, nodeId);
  for (const sandbox of left) {
    directory.close(sandbox);
    await deleteSandbox(db, sandbox, sandboxStates, { reason: 'lost', atUs: deps.clock() });
  }
  const reason = { message: `The machine that built it (node ${nodeId}) was taken out of the cluster; start it again` };
  await failBuilds(db, await buildsOnNode(db, nodeId), reason, deps.clock());
  return { lost: left.length };
}
