import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { ClosedExecution, DirectoryProtocol, Route, RoutesPage, RoutesCursor } from '../../protocol/directory.ts';
import type { SandboxDirectory } from './directory.ts';

/** How long the api waits for a change before it answers that there was none. */
const waitMs = 25_000;
/** Wait before asking again an api that does not answer. */
const retryMs = 200;

/** The sandboxes as the api reports them, kept at hand. */
type FollowedDirectory = { directory: SandboxDirectory; stop(): void };

/**
 * Keeps a local copy of the running sandboxes, so that requests to them need no call. The api is asked about any other
 * sandbox, because it may have started a moment ago. While the api is away, running sandboxes stay reachable and new
 * look-ups fail. `closed` is called for every execution whose connections must be cut, before the api is told that they
 * are.
 */
export function followDirectory(
  api: DirectoryProtocol,
  closed: (target: ClosedExecution) => void,
  log: Log,
): FollowedDirectory {
  const running = new Map<string, Route>();
  const stopping = new AbortController();
  void follow();
  return {
    directory: {
      find: sandboxId => running.get(sandboxId) ?? api.find(sandboxId).then(route => route ?? undefined),
      running: () => running.values(),
      wake: (sandboxId, signal) => api.wake(sandboxId, signal),
    },
    stop: () => stopping.abort(),
  };

  async function follow(): Promise<void> {
    let cursor: RoutesCursor | null = null;
    let isAway = false;
    while (!stopping.signal.aborted) {
      try {
        const page: RoutesPage = await api.changes(cursor, waitMs, stopping.signal);
        if (isAway) log.info('the api is back');
        isAway = false;
        // Requests that got the route just before have joined its traffic by then, and are cut with it.
        await new Promise<void>(resolve => void setImmediate(resolve));
        take(page);
        cursor = page.next;
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (!isAway)
          log.warn('the api does not say where sandboxes are and is asked again; what runs goes on', {
            error: messageOf(error),
          });
        isAway = true;
        await Bun.sleep(retryMs);
      }
    }
  }

  function take({ all, changes }: RoutesPage): void {
    if (all) begin(all);
    for (const change of changes) {
      if (change.kind === 'closed') end(change.closed);
      else running.set(change.route.sandboxId, change.route);
    }
  }

  /** Starts over: closes whatever stopped running while nobody reported it. */
  function begin(all: readonly Route[]): void {
    const now = new Set(all.map(({ executionId }) => executionId));
    for (const route of [...running.values()]) if (!now.has(route.executionId)) end(route);
    for (const route of all) running.set(route.sandboxId, route);
  }

  function end({ sandboxId, executionId }: ClosedExecution): void {
    if (running.get(sandboxId)?.executionId === executionId) running.delete(sandboxId);
    closed({ sandboxId, executionId });
  }
}
