import { Share } from '../../base/concurrency/share.ts';
import { AtollError } from '../../base/error.ts';

/** Half of the calls that all edges together have of a node for one team, a tenth for one sandbox. */
const dialsPerTeamMax = 5_000;
const dialsPerSandboxMax = 1_024;

/** A sandbox to connect into. Those that were started before nodes were told of teams count together. */
type Owned = { sandboxId: string; teamId?: string };

/**
 * Connections into sandboxes that are being made. A service that does not accept lets each of them wait for seconds,
 * and every edge counts for itself: so the machine counts as well, before one team has all the calls of a caller.
 */
export class PendingDials {
  readonly #teams = new Map<string, Share>();
  readonly #sandboxes = new Map<string, Share>();

  /** Makes one. Errors: those of `dial`, and `rate_limited` where the sandbox or its team has no place. */
  async within<T>(sandbox: Owned, dial: () => Promise<T>): Promise<T> {
    const { sandboxId, teamId = '' } = sandbox;
    const team = this.#teams.get(teamId) ?? new Share('team', dialsPerTeamMax, null);
    const own = this.#sandboxes.get(sandboxId) ?? new Share('sandbox', dialsPerSandboxMax, team);
    if (own.full !== null) throw tooMany(own.full);
    this.#teams.set(teamId, team);
    this.#sandboxes.set(sandboxId, own);
    own.take();
    try {
      return await dial();
    } finally {
      own.give();
      if (own.taken === 0) this.#sandboxes.delete(sandboxId);
      if (team.taken === 0) this.#teams.delete(teamId);
    }
  }
}

function tooMany({ holder, max }: Share): AtollError {
  const whose = holder === 'team' ? 'the sandboxes of this team' : 'this sandbox';
  return new AtollError('rate_limited', `${max} connections to ${whose} wait for a service to accept them`, {
    retryAfterSeconds: 1,
  });
}
