import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Store } from '../../database/database.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxDirectory } from '../directory/directory.ts';
import type { BusyExecutions } from '../rules/busy.ts';
import { allSandboxIds, sandboxesAtOnce, sandboxesById } from '../store/read.ts';

/** Dependencies of following the changes of other processes. */
type ChangesDeps = { busy: BusyExecutions; db: Db; directory: SandboxDirectory; log: Log };

/** When a row that could not be read is read again, milliseconds. */
const retryMs = 1_000;
/** If more sandboxes than this are unread, all are read. */
const unreadMax = 10_000;

/** Changed sandboxes; null where it may be any. */
type Changed = ReadonlySet<string> | null;

/**
 * Updates the directory with changes of other processes on the same database; does nothing where there are none. What
 * can't be read is read again, `later`, until it succeeds. Answers a function that ends it.
 */
export function followChanges(
  deps: ChangesDeps,
  store: Pick<Store, 'onSandboxChanges'>,
  later: (work: () => void) => () => void = afterRetryMs,
): () => Promise<void> {
  let turn: Promise<void> = Promise.resolve();
  let unread: Changed = new Set();
  let cancelRetry: (() => void) | undefined;
  let isOver = false;
  const read = async (changed: Changed) => {
    unread = both(unread, changed);
    try {
      await takeOver(deps, unread);
      unread = new Set();
    } catch (error) {
      deps.log.warn('what became of sandboxes was not read', { error: messageOf(error) });
      if (isOver) return;
      cancelRetry ??= later(() => {
        cancelRetry = undefined;
        take(new Set());
      });
    }
  };
  const take = (changed: Changed) => void (turn = turn.then(() => read(changed)));
  const stop = store.onSandboxChanges(take);
  return async () => {
    isOver = true;
    stop();
    cancelRetry?.();
    await turn;
  };
}

function afterRetryMs(work: () => void): () => void {
  const timer = setTimeout(work, retryMs);
  return () => clearTimeout(timer);
}

function both(one: Changed, other: Changed): Changed {
  if (one === null || other === null) return null;
  const all = one.union(other);
  return all.size > unreadMax ? null : all;
}

async function takeOver(deps: ChangesDeps, changed: Changed): Promise<void> {
  const ids = changed ? [...changed] : [...new Set([...(await allSandboxIds(deps.db)), ...deps.directory.ids()])];
  for (let first = 0; first < ids.length; first += sandboxesAtOnce)
    await takeOverPart(deps, new Set(ids.slice(first, first + sandboxesAtOnce)));
}

async function takeOverPart(deps: ChangesDeps, changed: ReadonlySet<string>): Promise<void> {
  const { busy, db, directory } = deps;
  using worked = busy.watch();
  const rows = await sandboxesById(db, changed);
  // A workflow of this process reports its own changes, in the right order. If it has ended since, the row may be from
  // before its end.
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
