import type { SandboxDirectory } from '../../src/api/app/directory.ts';
import type { ClosedExecution, RoutesPlace } from '../../src/protocol/directory.ts';

/** Follows a directory as the edge does, and collects the executions whose connections are to be cut. */
export function followClosed(directory: SandboxDirectory): Disposable & { closed: ClosedExecution[] } {
  const closed: ClosedExecution[] = [];
  const stop = new AbortController();
  const follow = async () => {
    for (let place: RoutesPlace | null = null; !stop.signal.aborted; ) {
      const page = await directory.changes(place, 60_000, stop.signal);
      for (const change of page.changes) if (change.kind === 'closed') closed.push(change.closed);
      place = page.next;
    }
    directory.edgeGone();
  };
  void follow();
  return { closed, [Symbol.dispose]: () => stop.abort() };
}
