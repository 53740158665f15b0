import type { Clock } from '../../../base/clock.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxDirectory } from '../../sandbox/directory/directory.ts';
import { finishPause } from '../../sandbox/store/pause.ts';
import { cancelResume } from '../../sandbox/store/resume.ts';
import { sandboxesOn } from '../../sandbox/store/read.ts';
import { lockGivenUp } from '../store/nodes.ts';

/**
 * Counts what ran on a machine that was given up as paused there, as the machine does itself: with memory where it can
 * keep that. What was between two states is settled when the machine is back, which can't be meanwhile; only a resume
 * of what is in the store is taken back at once.
 */
export async function pauseRowsOf(
  { clock, db, directory }: { clock: Clock; db: Db; directory: SandboxDirectory },
  nodeId: string,
): Promise<void> {
  const paused = await inTransaction(db, async db => {
    const node = await lockGivenUp(db, nodeId);
    if (!node) return [];
    const kept = node.info?.memory.kept ? 'memory' : 'filesystem';
    const running = (await sandboxesOn(db, nodeId, ['running'])).filter(sandbox => sandbox.nodeId === nodeId);
    const changed = [];
    for (const sandbox of running) changed.push(await finishPause(db, sandbox, { kept }, clock()));
    // Nobody was told that it runs, and what it was before is in the store.
    for (const sandbox of await sandboxesOn(db, nodeId, ['resuming']))
      if (sandbox.nodeId === nodeId && sandbox.durability === 'cluster' && sandbox.nextExecutionId !== null)
        changed.push(await cancelResume(db, { ...sandbox, nextExecutionId: sandbox.nextExecutionId }));
    return changed;
  });
  for (const sandbox of paused) if (sandbox) directory.apply(sandbox);
}
