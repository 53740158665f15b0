import { createContext, use } from 'react';

/** Browsers have six requests at a time under way over HTTP/1.1; two are left for all that is short. */
const heldMax = 4;

/** A request that is open for as long as something is looked at. */
type LongRequest = {
  /** What is shown comes first. */
  isShown: () => boolean;
  /** Ends it for another one that is shown; without it, it is shown for as long as it goes on. */
  giveWay?: () => void;
};

type Waiting = { request: LongRequest; begin: () => void };

/** How many long requests this page may have under way at once, and which wait. */
export class Connections {
  readonly #max: number;
  readonly #held = new Set<LongRequest>();
  #waiting: Waiting[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /** Settles once the request may begin, or with `signal`, by which it ends. `onWait`: it can't yet. */
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

  /** Lets begin what may. To be called where something else is shown. */
  look(): void {
    const queue = this.#waiting.toSorted((a, b) => Number(b.request.isShown()) - Number(a.request.isShown()));
    for (const one of queue) {
      if (this.#held.size >= this.#max) {
        // Its end looks again.
        if (one.request.isShown()) [...this.#held].find(held => held.giveWay && !held.isShown())?.giveWay?.();
        return;
      }
      this.#held.add(one.request);
      this.#waiting = this.#waiting.filter(other => other !== one);
      one.begin();
    }
  }
}

/** The connections of this page: over HTTP/2 one carries all requests, and none has to wait. */
export function connectionsOfPage(): Connections {
  const [page] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  return new Connections(/^h[23]/.test(page?.nextHopProtocol ?? '') ? Number.POSITIVE_INFINITY : heldMax);
}

/** Holds the connections of the page, for everything below it. */
export const ConnectionsContext = createContext<Connections | null>(null);

/** The connections of the page. */
export function useConnections(): Connections {
  const connections = use(ConnectionsContext);
  if (!connections) throw new Error('this page has no connections');
  return connections;
}
