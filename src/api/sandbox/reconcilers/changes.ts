import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Store } from '../../database/database.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxDirectory } from '../directory/directory.ts';
import type { BusyExecutions } from '../rules/busy.ts';
import { allSandboxIds, sandboxesAtOnce, sandboxesById } from '../store/read.ts';

/** Dependencies of following the changes of others. */
type ChangesDeps = { busy: BusyExecutions; db: Db; directory: SandboxDirectory; log: Log };

/**
 * Brings the directory up to date with what other processes on the same database do. Nothing where there is no other.
 * Answers what ends it.
 */
export function followChanges(deps: ChangesDeps, store: Pick<Store, 'onSandboxChanges'>): () => Promise<void> {
  let turn: Promise<void> = Promise.resolve();
  const stop = store.onSandboxChanges(changed => {
    turn = turn
      .then(() => takeOver(deps, changed))
      // Adoption finds it later.
      .catch((error: unknown) => deps.log.warn('what became of sandboxes was not read', { error: messageOf(error) }));
  });
  return async () => {
    stop();
    await turn;
  };
}

/** `changed` null: it may be any. */
async function takeOver(deps: ChangesDeps, changed: ReadonlySet<string> | null): Promise<void> {
  const ids = changed ? [...changed] : [...new Set([...(await allSandboxIds(deps.db)), ...deps.directory.ids()])];
  for (let first = 0; first < ids.length; first += sandboxesAtOnce)
    await takeOverPart(deps, new Set(ids.slice(first, first + sandboxesAtOnce)));
}

async function takeOverPart(deps: ChangesDeps, changed: ReadonlySet<string>): Promise<void> {
  const { busy, db, directory } = deps;
  using worked = busy.watch();
  const rows = await sandboxesById(db, changed);
  // What a workflow of this process works on it says itself, in the right order. Of one that has ended since, the row
  // may be from before its end.
  const again = new Set<string>();
  const isOwn = ({ sandboxId, executionId }: { sandboxId: string; executionId: string }) => {
    if (worked.has(executionId) && !busy.has(executionId)) again.add(sandboxId);
    return worked.has(executionId);
  };
  for (const row of rows) if (!isOwn(row)) directory.apply(row);
  const there = new Set(rows.map(({ sandboxId }) => sandboxId));
  for (const sandboxId of changed) {
    const route = there.has(sandboxId) ? undefined : directory.find(sandboxId);
    if (route && !isOwn(route)) directory.close(route);
  }
  if (again.size > 0) await takeOverPart(deps, again);
}
