import { IdleLink, IdleList } from './idle-list.ts';
import type { EdgeLimits } from '../limits.ts';
import { isLoopback, networkOf } from './network-of.ts';
import { Share } from '../../base/concurrency/share.ts';

/** A connection that can be closed between two requests. */
export type Evictable = {
  /** Its place is needed: closes the connection at once. */
  evict(): void;
  /** It was idle for too long. */
  expired(): void;
};

/** Everybody behind one address (or /64): what they have open, and their requests to the API in flight. */
export type Origin = { readonly network: string; readonly connections: Share; readonly apiRequests: Share };

type Group = { readonly connections: Share; readonly apiRequests: Share; readonly idle: IdleList<Seat> };
type Neighbours = Origin & { readonly group: Group; readonly idle: IdleList<Seat> };

/** The place of one connection. It is idle until the first request. */
export class Seat {
  readonly origin: Origin;
  /** Since when it has been idle, on the edge's clock. Valid only while it is idle. */
  idleSinceMs: number;
  /** The connection that holds the place; set by the code that was admitted. */
  owner: Evictable | null = null;
  readonly #neighbours: Neighbours;
  readonly #inNetwork = new IdleLink<Seat>(this);
  readonly #inGroup = new IdleLink<Seat>(this);
  readonly #onLeave: (network: string) => void;
  #left = false;

  constructor(neighbours: Neighbours, nowMs: number, onLeave: (network: string) => void) {
    this.origin = neighbours;
    this.#neighbours = neighbours;
    this.#onLeave = onLeave;
    this.idleSinceMs = nowMs;
    neighbours.connections.take();
    this.idle(nowMs);
  }

  /** Between requests: the connection may be closed to make room. */
  idle(nowMs: number): void {
    if (this.#left) return;
    this.idleSinceMs = nowMs;
    this.#neighbours.idle.append(this.#inNetwork);
    this.#neighbours.group.idle.append(this.#inGroup);
  }

  /** A request is under way. */
  busy(): void {
    this.#inNetwork.unlink();
    this.#inGroup.unlink();
  }

  /** The connection is gone. */
  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.busy();
    this.#neighbours.connections.give();
    this.#onLeave(this.origin.network);
  }
}

/** How full the table is when idle connections begin to be closed sooner. */
const crowdedFrom = 0.5;

/**
 * The connected clients, bounded so that nobody can lock others out. When the table or an address's share of it is
 * full, a newcomer takes the place of the connection that has been idle longest; it is refused only if every connection
 * has a request in flight. Some places are reserved for this machine itself, where operators connect from.
 */
export class ClientTable {
  readonly #limits: EdgeLimits;
  readonly #everyoneIsLocal: boolean;
  readonly #connections: Share;
  readonly #locals: Group;
  readonly #strangers: Group;
  readonly #networks = new Map<string, Neighbours>();
  /** Newcomers that found no place, plus connections that lost theirs to a newcomer. */
  refused = 0;
  evicted = 0;

  /** `everyoneIsLocal`: the clients are load balancers, which stand for many. */
  constructor(limits: EdgeLimits, everyoneIsLocal: boolean) {
    this.#limits = limits;
    this.#everyoneIsLocal = everyoneIsLocal;
    this.#connections = new Share('everybody', limits.clientConnectionsMax, null);
    const apiRequests = new Share('everybody', limits.apiRequestsMax, null);
    this.#locals = { connections: this.#connections, apiRequests, idle: new IdleList() };
    this.#strangers = {
      connections: new Share(
        'strangers',
        limits.clientConnectionsMax - limits.localConnectionsReserved,
        this.#connections,
      ),
      apiRequests: new Share('strangers', limits.apiRequestsMax - limits.localApiRequestsReserved, apiRequests),
      idle: new IdleList(),
    };
  }

  get size(): number {
    return this.#connections.taken;
  }

  /** A place for a connection from `address`; null where there is none. */
  admit(address: string, nowMs: number): Seat | null {
    const neighbours = this.#neighboursAt(address);
    for (let full = neighbours.connections.full; full !== null; full = neighbours.connections.full) {
      const leaving = this.#longestIdle(full, neighbours);
      if (leaving === null) {
        this.refused++;
        this.#forgetIfEmpty(neighbours.network);
        return null;
      }
      this.evicted++;
      leaving.leave();
      leaving.owner?.evict();
    }
    return new Seat(neighbours, nowMs, this.#forgetIfEmpty);
  }

  /** Closes connections that have been idle for longer than the current load allows. */
  closeIdle(nowMs: number): void {
    const { keepAliveTimeoutMs, crowdedKeepAliveMs } = this.#limits;
    const fill = this.size / this.#limits.clientConnectionsMax;
    if (fill <= crowdedFrom) return;
    const crowd = Math.min(1, (fill - crowdedFrom) / (1 - crowdedFrom));
    const allowedMs = keepAliveTimeoutMs + (crowdedKeepAliveMs - keepAliveTimeoutMs) * crowd;
    for (const { idle } of [this.#locals, this.#strangers]) {
      for (let seat = idle.oldest; seat !== null && nowMs - seat.idleSinceMs > allowedMs; seat = idle.oldest) {
        // It closes in order; until then it must not be evicted.
        seat.busy();
        seat.owner?.expired();
      }
    }
  }

  #longestIdle(full: Share, neighbours: Neighbours): Seat | null {
    if (full.holder === 'address') return neighbours.idle.oldest;
    if (full.holder === 'strangers') return this.#strangers.idle.oldest;
    const [local, stranger] = [this.#locals.idle.oldest, this.#strangers.idle.oldest];
    if (local === null || stranger === null) return local ?? stranger;
    return local.idleSinceMs < stranger.idleSinceMs ? local : stranger;
  }

  #neighboursAt(address: string): Neighbours {
    const isLocal = this.#everyoneIsLocal || isLoopback(address);
    const network = isLocal ? '' : networkOf(address);
    const known = this.#networks.get(network);
    if (known !== undefined) return known;
    const group = isLocal ? this.#locals : this.#strangers;
    const { connectionsPerAddressMax, apiRequestsPerAddressMax } = this.#limits;
    const neighbours = {
      network,
      group,
      connections: isLocal ? group.connections : new Share('address', connectionsPerAddressMax, group.connections),
      apiRequests: isLocal ? group.apiRequests : new Share('address', apiRequestsPerAddressMax, group.apiRequests),
      idle: new IdleList<Seat>(),
    };
    this.#networks.set(network, neighbours);
    return neighbours;
  }

  /** Requests still in flight hold their share themselves; an origin forgotten here has no connection. */
  readonly #forgetIfEmpty = (network: string): void => {
    const known = this.#networks.get(network);
    if (network !== '' && known !== undefined && known.connections.taken === 0) this.#networks.delete(network);
  };
}
