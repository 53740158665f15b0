import type { SandboxDirectory } from '../../src/api/sandbox/directory/directory.ts';
import type { ClosedExecution, RoutesCursor } from '../../src/protocol/directory.ts';

/** Follows a directory as the edge does, and collects the executions whose connections must be cut. */
export function followClosed(directory: SandboxDirectory): Disposable & { closed: ClosedExecution[] } {
  const closed: ClosedExecution[] = [];
  const stop = new AbortController();
  const follow = async () => {
    for (let cursor: RoutesCursor | null = null; !stop.signal.aborted;) {
      const page = await directory.changes(cursor, 60_000, stop.signal);
      for (const change of page.changes) if (change.kind === 'closed') closed.push(change.closed);
      cursor = page.next;
    }
    directory.edgeGone();
  };
  void follow();
  return { closed, [Symbol.dispose]: () => stop.abort() };
}
