import { AtollError } from '../../../base/error.ts';
import { Share } from '../../../base/concurrency/share.ts';

/** Archives that all teams together may upload at a time. */
const uploadsAtOnceMax = 32;
/** Archives that one team may upload at a time. */
export const uploadsPerTeamMax = 8;

/** Uploads of all teams together that may wait for a place. */
const uploadsWaitingMax = 512;
/** Uploads of one team that may wait for a place: clients send all files of a template at once. */
export const uploadsWaitingPerTeamMax = 128;
/** Shorter than the edge waits for a byte of a body (`apiBodyIdleTimeoutMs`): during the wait none is read. */
const uploadWaitMs = 45_000;

/** How many uploads may be under way, and how many may wait, of everybody and of one team. */
type UploadBounds = { atOnceMax: number; perTeamMax: number; waitingMax: number; waitingPerTeamMax: number };

const archives: UploadBounds = {
  atOnceMax: uploadsAtOnceMax,
  perTeamMax: uploadsPerTeamMax,
  waitingMax: uploadsWaitingMax,
  waitingPerTeamMax: uploadsWaitingPerTeamMax,
};

type Team = { uploads: Share; waiting: Share };
type Waiting = { team: Team; begin(): void };

/** The uploads under way, and those that wait for a place. */
export class Uploads {
  readonly #all: Share;
  readonly #allWaiting: Share;
  readonly #teams = new Map<string, Team>();
  /** In order of arrival. */
  readonly #queue = new Set<Waiting>();
  readonly #waitMs: number;
  readonly #bounds: UploadBounds;

  /** By default with the bounds for archives. */
  constructor(waitMs: number = uploadWaitMs, bounds: UploadBounds = archives) {
    this.#waitMs = waitMs;
    this.#bounds = bounds;
    this.#all = new Share('everybody', bounds.atOnceMax, null);
    this.#allWaiting = new Share('everybody', bounds.waitingMax, null);
  }

  /**
   * Takes a place for an upload of a team, which disposal gives back; waits where none is free. Throws `rate_limited`
   * where too many wait or none becomes free in time, `canceled` when the signal aborts.
   */
  async begin(teamId: string, signal: AbortSignal): Promise<Disposable> {
    const team = this.#teams.get(teamId) ?? {
      uploads: new Share('team', this.#bounds.perTeamMax, this.#all),
      waiting: new Share('team', this.#bounds.waitingPerTeamMax, this.#allWaiting),
    };
    this.#teams.set(teamId, team);
    try {
      if (team.uploads.full === null) team.uploads.take();
      else await this.#wait(team, signal);
    } finally {
      this.#forgetIdle(teamId, team);
    }
    return {
      [Symbol.dispose]: () => {
        team.uploads.give();
        this.#next();
        this.#forgetIdle(teamId, team);
      },
    };
  }

  /** Settles when the caller has a place. */
  async #wait(team: Team, signal: AbortSignal): Promise<void> {
    const { full } = team.waiting;
    if (full) throw refusal(full, 'uploads that wait');
    const place = Promise.withResolvers<void>();
    const waiting: Waiting = { team, begin: place.resolve };
    // Leaves at once: whatever is in the queue can be given a place.
    const leave = (error: AtollError) => {
      if (this.#queue.delete(waiting)) team.waiting.give();
      place.reject(error);
    };
    const onAbort = () => leave(new AtollError('canceled', 'The request was given up by the client'));
    const busy = team.uploads.full ?? this.#all;
    const timer = setTimeout(() => leave(refusal(busy, 'uploads under way')), this.#waitMs);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#queue.add(waiting);
    team.waiting.take();
    if (signal.aborted) onAbort();
    try {
      await place.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Gives a free place to the team with the fewest, for its upload that has waited longest. */
  #next(): void {
    const able = [...this.#queue].filter(({ team }) => team.uploads.full === null);
    const [next] = able.sort((a, b) => a.team.uploads.taken - b.team.uploads.taken);
    if (!next) return;
    this.#queue.delete(next);
    next.team.waiting.give();
    next.team.uploads.take();
    next.begin();
  }

  #forgetIdle(teamId: string, team: Team): void {
    if (team.uploads.taken === 0 && team.waiting.taken === 0) this.#teams.delete(teamId);
  }
}

function refusal({ holder, max }: Share, what: string): AtollError {
  const whose = holder === 'team' ? 'The team has' : 'There are';
  return new AtollError('rate_limited', `${whose} ${max} ${what}: send it again when one has ended`, {
    retryAfterSeconds: 1,
  });
}
