import { createJournal } from '../../../base/journal.ts';
import type { ClosedExecution, Route, RouteChange, RoutesPage, RoutesCursor } from '../../../protocol/directory.ts';

/**
 * Changes that the edge has not heard of are kept up to this number; beyond it the edge starts over with all that runs.
 */
const changesMax = 10_000;
/**
 * How long a kill waits for a silent edge, milliseconds. Longer than the watchdog lets a process stand still: by then
 * the edge has cut its connections, or it was ended, which cuts them too.
 */
const settleTimeoutMs = 15_000;

/** What the edge is told of sandboxes, and what it has confirmed. */
type Edges = {
  append(change: RouteChange): void;
  /** See `DirectoryProtocol.changes`; `running`: all sandboxes that run now. */
  follow(after: RoutesCursor | null, waitMs: number, running: () => Route[], signal?: AbortSignal): Promise<RoutesPage>;
  /**
   * Resolves when no connection to what was closed until now is open: the edge has confirmed it, or there is no edge.
   */
  settled(): Promise<void>;
  /** Call it when the edge, and so its connections, are gone. */
  gone(): void;
};

/** Edges, before any has asked. */
export function createEdges(): Edges {
  const journal = createJournal<RouteChange>(changesMax);
  const waiting = new Set<{ upTo: number; resolve(): void }>();
  let isThere = false;

  function release(upTo: number): void {
    for (const one of [...waiting]) if (one.upTo <= upTo) one.resolve();
  }

  return {
    append: change => journal.append(change),
    async follow(after, waitMs, running, signal) {
      isThere = true;
      const end = journal.end();
      if (after?.epoch !== end.epoch) return { all: running(), changes: [], next: end };
      release(after.number);
      const page = await journal.read(after, waitMs, signal);
      return page.isGap
        ? { all: running(), changes: [], next: page.next }
        : { all: null, changes: page.items, next: page.next };
    },
    settled() {
      const upTo = journal.end().number;
      if (!isThere || journal.readUpTo() >= upTo) return Promise.resolve();
      return new Promise(resolve => {
        const timer = setTimeout(() => one.resolve(), settleTimeoutMs);
        const one = {
          upTo,
          resolve() {
            clearTimeout(timer);
            waiting.delete(one);
            resolve();
          },
        };
        waiting.add(one);
      });
    },
    gone() {
      isThere = false;
      release(Number.POSITIVE_INFINITY);
    },
  };
}

/** The change that tells the edge to cut an execution's connections. */
export function closedChange({ sandboxId, executionId }: ClosedExecution): RouteChange {
  return { kind: 'closed', closed: { sandboxId, executionId } };
}
