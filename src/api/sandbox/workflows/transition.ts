import { AtollError } from '../../../base/error.ts';
import { findExecution } from '../store/read.ts';
import type { SandboxRecord } from '../record.ts';
import type { Resuming } from '../rules/resuming.ts';
import type { Db } from '../../database/db.ts';

/** A client waits 60 s by default: one that is told to come again still has time for it. */
const transitionWaitMs = 50_000;
const pollMs = { first: 5, max: 100 };

/** Waits until a sandbox has left its transition. Throws `conflict` when that takes too long. */
export async function awaitTransition(
  { db, resuming }: { db: Db; resuming: Resuming },
  sandbox: SandboxRecord,
): Promise<void> {
  const resume = resuming.underWay(sandbox.sandboxId);
  if (resume) return void (await resume.catch(() => {}));
  const deadline = performance.now() + transitionWaitMs;
  for (let waitMs = pollMs.first; ; waitMs = Math.min(waitMs * 2, pollMs.max)) {
    const now = await findExecution(db, sandbox);
    if (now?.state !== sandbox.state) return;
    if (performance.now() > deadline)
      throw new AtollError(
        'conflict',
        `Sandbox "${sandbox.sandboxId}" has been ${sandbox.state} for too long: ask again`,
      );
    await Bun.sleep(waitMs);
  }
}
