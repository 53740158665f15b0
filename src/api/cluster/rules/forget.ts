import { AtollError } from '../../../base/error.ts';
import type { Clock } from '../../../base/clock.ts';
import { sandboxStates } from '../../../protocol/state.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxDirectory } from '../../sandbox/directory/directory.ts';
import type { SandboxFacts } from '../../sandbox/record.ts';
import { sandboxesOn } from '../../sandbox/store/read.ts';
import { cancelResume } from '../../sandbox/store/resume.ts';
import { deleteSandbox } from '../../sandbox/store/state.ts';
import { forgetVolumeRemovalsOn } from '../../volume/store/removals.ts';
import { deleteClusterNode, lockClusterNode } from '../store/nodes.ts';
import type { Authority } from './authority.ts';
import { requireCluster } from './join.ts';
import type { Machines } from './machines.ts';

/** Dependencies of forgetting a machine. */
export type ForgetDeps = {
  authority: Authority | null;
  machines: Machines | null;
  clock: Clock;
  db: Db;
  directory: SandboxDirectory;
};

/**
 * Forgets a machine for good: its certificate is worth nothing any more, and every sandbox that is on it, running or
 * paused, is lost, but for those whose pause is in the store: these go on elsewhere, and so do builds. Errors:
 * `not_found`; `conflict` while it is in reach and has sandboxes, which can be moved or ended.
 */
export async function forgetNode(deps: ForgetDeps, nodeId: string): Promise<{ lost: number; stored: number }> {
  requireCluster(deps.authority);
  const { db, directory } = deps;
  const left = await inTransaction(db, db => takeOut(db, nodeId, deps.machines));
  const stored: SandboxFacts[] = [];
  for (const sandbox of left) {
    const kept = await keptElsewhere(deps, sandbox);
    if (kept) {
      stored.push(kept);
      continue;
    }
    directory.close(sandbox);
    await deleteSandbox(db, sandbox, sandboxStates, { reason: 'lost', atUs: deps.clock() });
  }
  return { lost: left.length - stored.length, stored: stored.length };
}

/** Removes a machine, and answers what is on it: no other sandbox comes there, as each asks for the machine's row. */
async function takeOut(db: Db, nodeId: string, machines: Machines | null): Promise<SandboxFacts[]> {
  if (!(await lockClusterNode(db, nodeId))) throw new AtollError('not_found', `Node "${nodeId}" was not found`);
  const left = (await sandboxesOn(db, nodeId, sandboxStates)).filter(sandbox => sandbox.nodeId === nodeId);
  if (left.length > 0 && machines?.usable().some(({ node }) => node.nodeId === nodeId))
    throw new AtollError(
      'conflict',
      `Node "${nodeId}" is in reach and has ${left.length} sandboxes: end them, or stop the machine first`,
    );
  await deleteClusterNode(db, nodeId);
  await forgetVolumeRemovalsOn(db, nodeId);
  return left;
}

/** The sandbox as paused, where what it has kept is in the store: a resume that was under way ends with the machine. */
async function keptElsewhere({ db, directory }: ForgetDeps, sandbox: SandboxFacts): Promise<SandboxFacts | null> {
  if (sandbox.durability !== 'cluster') return null;
  // What becomes of one that is moved is settled with the other machine.
  if (sandbox.state === 'paused' || sandbox.state === 'moving') return sandbox;
  const { nextExecutionId } = sandbox;
  if (sandbox.state !== 'resuming' || nextExecutionId === null) return null;
  const paused = await cancelResume(db, { ...sandbox, nextExecutionId });
  if (paused) directory.apply(paused);
  return paused;
}
