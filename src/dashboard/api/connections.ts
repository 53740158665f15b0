import { createContext, use } from 'react';

/** Browsers run six requests at a time over HTTP/1.1; two are left for short ones. */
const heldMax = 4;

/** A request that stays open as long as something is looked at. */
type LongRequest = {
  /** Visible things come first. */
  isShown: () => boolean;
  /** Ends the request in favour of another one that is shown; absent: it counts as shown as long as it lasts. */
  giveWay?: () => void;
};

type Waiting = { request: LongRequest; begin: () => void };

/** Limits how many long requests this page runs at once, and queues the others. */
export class Connections {
  readonly #max: number;
  readonly #held = new Set<LongRequest>();
  #waiting: Waiting[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Settles once the request may begin, or when `signal` aborts, which also ends the request. `onWait`: it has to wait.
   */
  async hold(request: LongRequest, signal: AbortSignal, onWait?: () => void): Promise<void> {
    if (this.#held.has(request) || signal.aborted) return;
    await new Promise<void>(begin => {
      this.#waiting.push({ request, begin });
      signal.addEventListener('abort', () => this.end(request), { once: true });
      this.look();
      if (!this.#held.has(request)) onWait?.();
    });
  }

  /** A request is over, or nobody waits for it any more. */
  end(request: LongRequest): void {
    this.#held.delete(request);
    const [own, others] = [this.#waiting.filter(one => one.request === request), this.#waiting];
    this.#waiting = others.filter(one => !own.includes(one));
    for (const { begin } of own) begin();
    this.look();
  }

  /** Starts the requests that may begin. Call it when something else is shown. */
  look(): void {
    const queue = this.#waiting.toSorted((a, b) => Number(b.request.isShown()) - Number(a.request.isShown()));
    for (const one of queue) {
      if (this.#held.size >= this.#max) {
        // The end of that request looks again.
        if (one.request.isShown()) [...this.#held].find(held => held.giveWay && !held.isShown())?.giveWay?.();
        return;
      }
      this.#held.add(one.request);
      this.#waiting = this.#waiting.filter(other => other !== one);
      one.begin();
    }
  }
}

/** The connections of this page. Over HTTP/2, one connection carries all requests, and none has to wait. */
export function connectionsOfPage(): Connections {
  const [page] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  return new Connections(/^h[23]/.test(page?.nextHopProtocol ?? '') ? Number.POSITIVE_INFINITY : heldMax);
}

/** Provides the page's connections to everything below it. */
export const ConnectionsContext = createContext<Connections | null>(null);

/** The connections of the page. */
export function useConnections(): Connections {
  const connections = use(ConnectionsContext);
  if (!connections) throw new Error('this page has no connections');
  return connections;
}
