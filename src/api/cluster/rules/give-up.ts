import type { Clock } from '../../../base/clock.ts';
import { recordTakenBack } from '../../blob/store/blobs.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxDirectory } from '../../sandbox/directory/directory.ts';
import { finishPause } from '../../sandbox/store/pause.ts';
import { cancelResume } from '../../sandbox/store/resume.ts';
import type { SandboxFacts } from '../../sandbox/record.ts';
import { sandboxesOn } from '../../sandbox/store/read.ts';
import { lockGivenUp } from '../store/nodes.ts';

/** Rows that one transaction changes: each is read whole, and events may be long. */
const rowsAtOnce = 32;

/** What it takes to give up a machine. */
type GiveUpDeps = { clock: Clock; db: Db; directory: SandboxDirectory };

/**
 * Counts sandboxes of a given-up machine as paused there, as the machine does itself: with memory where it can keep
 * that. Sandboxes in transition are settled when the machine is back, as they can't be earlier; only a resume of one in
 * the store is taken back at once. If the machine comes back in the middle, the rest is as it says.
 */
export async function pauseRowsOf(deps: GiveUpDeps, nodeId: string): Promise<void> {
  const there = (await sandboxesOn(deps.db, nodeId, ['running', 'resuming'])).filter(
    sandbox => sandbox.nodeId === nodeId && (sandbox.state === 'running' || sandbox.durability === 'cluster'),
  );
  for (let first = 0; first < there.length; first += rowsAtOnce)
    if (!(await pauseRows(deps, nodeId, there.slice(first, first + rowsAtOnce)))) return;
}

/** False where the machine is no longer given up. */
async function pauseRows(
  { clock, db, directory }: GiveUpDeps,
  nodeId: string,
  rows: readonly SandboxFacts[],
): Promise<boolean> {
  const paused = await inTransaction(db, async db => {
    const node = await lockGivenUp(db, nodeId);
    if (!node) return null;
    const kept = node.info?.memory.kept ? 'memory' : 'filesystem';
    const changed = [];
    for (const sandbox of rows) {
      const { nextExecutionId } = sandbox;
      if (sandbox.state === 'running') changed.push(await finishPause(db, sandbox, { kept }, clock()));
      // Nobody was told that it runs, and its earlier state is in the store. The machine may have begun it, though.
      else if (nextExecutionId !== null) {
        const cancelled = await cancelResume(db, { ...sandbox, nextExecutionId });
        if (cancelled) await recordTakenBack(db, nextExecutionId, clock());
        changed.push(cancelled);
      }
    }
    return changed;
  });
  for (const sandbox of paused ?? []) if (sandbox) directory.apply(sandbox);
  return paused !== null;
}
