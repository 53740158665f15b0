import type { EdgeLimits } from '../limits.ts';
import { Share } from '../../base/concurrency/share.ts';

/** One team's share of the edge's connections into sandboxes. */
export class TeamTraffic {
  readonly teamId: string;
  /** Connections that are kept and idle. */
  readonly idle: Share;
  /** Requests and upgraded connections in flight into its sandboxes, including those that wait for one to wake. */
  readonly requests: Share;
  readonly #perSandboxMax: number;

  constructor(teamId: string, limits: EdgeLimits, requests: Share, idle: Share) {
    this.teamId = teamId;
    this.requests = requests;
    this.idle = idle;
    this.#perSandboxMax = limits.connectionsPerSandboxMax;
  }

  /** The share for requests into one more of its sandboxes. */
  requestsOfSandbox(): Share {
    return new Share('sandbox', this.#perSandboxMax, this.requests);
  }
}

/**
 * Traffic into sandboxes by team, so that hanging requests of one team leave room for another's. An installation has
 * few teams, so none is forgotten.
 */
export class Teams {
  readonly #limits: EdgeLimits;
  readonly #teams = new Map<string, TeamTraffic>();
  readonly #requests: Share;
  readonly #idle: Share;

  constructor(limits: EdgeLimits) {
    this.#limits = limits;
    this.#requests = new Share('everybody', limits.sandboxRequestsMax, null);
    this.#idle = new Share('everybody', limits.idleSandboxUpstreamsMax, null);
  }

  /** Requests and upgraded connections in flight into all sandboxes. */
  get inFlight(): number {
    return this.#requests.taken;
  }

  of(teamId: string): TeamTraffic {
    const known = this.#teams.get(teamId);
    if (known !== undefined) return known;
    const { requestsPerTeamMax, idleUpstreamsPerTeamMax } = this.#limits;
    const requests = new Share('team', requestsPerTeamMax, this.#requests);
    const idle = new Share('team', idleUpstreamsPerTeamMax, this.#idle);
    const team = new TeamTraffic(teamId, this.#limits, requests, idle);
    this.#teams.set(teamId, team);
    return team;
  }
}
