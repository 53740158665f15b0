import { counted } from '../../../base/counted.ts';
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
import { volumesAloneOn } from '../../volume/store/volumes.ts';
import { deleteClusterNode, giveUpNode, listClusterNodes, lockClusterNode } from '../store/nodes.ts';
import type { Authority } from './authority.ts';
import { requireCluster } from './join.ts';
import { leaseSeconds } from './lease.ts';
import type { Machines } from './machines.ts';

/** Dependencies of forgetting a machine. */
export type ForgetDeps = {
  authority: Authority | null;
  machines: Machines | null;
  clock: Clock;
  db: Db;
  directory: SandboxDirectory;
};

/** What only that machine had, and how many of its paused sandboxes are in the store. */
type Forgotten = { lost: { sandboxes: number; volumes: number }; stored: number };

/**
 * Forgets a machine for good: its certificate becomes worthless, and every sandbox on it, running or paused, is lost,
 * except those whose pause is in the store: they go on elsewhere, and so do builds. The other machine settles what
 * becomes of a sandbox that is being moved. The machine itself is removed last, so that an interrupted call can be
 * repeated. Errors: `not_found`; `conflict` while it is in reach and has sandboxes, which can be moved or ended.
 */
export async function forgetNode(deps: ForgetDeps, nodeId: string): Promise<Forgotten> {
  requireCluster(deps.authority);
  const { db } = deps;
  let lost = 0;
  // Each round leaves less: no work comes to a machine that is given up.
  for (;;) {
    const { left, stored, volumes, isOut } = await inTransaction(db, db => takeOut({ ...deps, db }, nodeId));
    if (isOut) {
      // The next request finds it gone already, and not only after the next round.
      deps.machines?.update(await listClusterNodes(db));
      return { lost: { sandboxes: lost, volumes }, stored };
    }
    for (const sandbox of left) if (await loseOrKeep(deps, sandbox)) lost++;
  }
}

/**
 * Removes a machine that has nothing to lose. No other sandbox can come to it meanwhile, as each placement reads the
 * machine's row.
 */
async function takeOut(
  { clock, db, machines }: ForgetDeps,
  nodeId: string,
): Promise<{ left: SandboxFacts[]; stored: number; volumes: number; isOut: boolean }> {
  const node = await lockClusterNode(db, nodeId);
  if (!node) throw new AtollError('not_found', `Node "${nodeId}" was not found`);
  // Another process may be talking to it although this one can't reach it: each lease is in the database before it is
  // given.
  const hasLease = !node.isGivenUp && node.leaseUntilUs !== null && node.leaseUntilUs > clock();
  const isInReach = hasLease || machines?.usable().some(({ node }) => node.nodeId === nodeId);
  const there = (await sandboxesOn(db, nodeId, sandboxStates)).filter(sandbox => sandbox.nodeId === nodeId);
  if (there.length > 0 && isInReach)
    throw new AtollError(
      'conflict',
      `Node "${nodeId}" is in reach, or was some seconds ago, and has ` +
        `${counted(there.length, 'sandbox', 'sandboxes')}, running or paused: end them, or stop the machine first`,
      { retryAfterSeconds: leaseSeconds },
    );
  const left = there.filter(sandbox => sandbox.state !== 'moving' && !isStored(sandbox));
  const facts = { left, stored: there.filter(isStored).length, volumes: await volumesAloneOn(db, nodeId) };
  if (left.length > 0) {
    await giveUpNode(db, nodeId);
    return { ...facts, isOut: false };
  }
  await deleteClusterNode(db, nodeId);
  await forgetVolumeRemovalsOn(db, nodeId);
  return { ...facts, isOut: true };
}

const isStored = ({ state, durability }: SandboxFacts) => state === 'paused' && durability === 'cluster';

/** True where it is lost. A resume of a sandbox in the store ends with the machine. */
async function loseOrKeep({ clock, db, directory }: ForgetDeps, sandbox: SandboxFacts): Promise<boolean> {
  const { state, durability, nextExecutionId } = sandbox;
  if (state === 'resuming' && durability === 'cluster' && nextExecutionId !== null) {
    const paused = await cancelResume(db, { ...sandbox, nextExecutionId });
    if (paused) directory.apply(paused);
    return false;
  }
  if (!(await deleteSandbox(db, sandbox, [state], { reason: 'lost', atUs: clock() }))) return false;
  directory.close(sandbox);
  return true;
}
