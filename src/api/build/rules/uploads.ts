import { AtollError } from '../../../base/error.ts';
import { Share } from '../../../base/concurrency/share.ts';

/** Archives that all teams together, and one of them, may upload at a time. */
const uploadsAtOnceMax = 32;
/** Archives that one team may upload at a time. */
export const uploadsPerTeamMax = 8;

/** The uploads under way. */
export class Uploads {
  readonly #all = new Share('everybody', uploadsAtOnceMax, null);
  readonly #teams = new Map<string, Share>();

  /** A place for an upload of a team, given back by disposal. Throws `rate_limited` where there is none. */
  begin(teamId: string): Disposable {
    const team = this.#teams.get(teamId) ?? new Share('team', uploadsPerTeamMax, this.#all);
    const { full } = team;
    if (full !== null) {
      const whose = full.holder === 'team' ? 'The team has' : 'There are';
      throw new AtollError('rate_limited', `${whose} ${full.max} uploads under way: send it again when one has ended`, {
        retryAfterSeconds: 1,
      });
    }
    this.#teams.set(teamId, team);
    team.take();
    return {
      [Symbol.dispose]: () => {
        team.give();
        if (team.taken === 0) this.#teams.delete(teamId);
      },
    };
  }
}
