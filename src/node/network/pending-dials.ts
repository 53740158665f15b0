import { Share } from '../../base/concurrency/share.ts';
import { AtollError } from '../../base/error.ts';

/**
 * Half of the calls that all edges together can make to a node are for one team at most, and a tenth for one sandbox.
 */
const dialsPerTeamMax = 5_000;
const dialsPerSandboxMax = 1_024;

/** A sandbox to connect into. Sandboxes from before nodes knew teams count together. */
type Owned = { sandboxId: string; teamId?: string };

/**
 * Connections into sandboxes that are being made. With a service that does not accept, each of them waits for seconds,
 * and every edge counts only its own: so the machine counts as well, before one team has all the calls of a caller.
 */
export class PendingDials {
  readonly #teams = new Map<string, Share>();
  readonly #sandboxes = new Map<string, Share>();

  /** Makes a connection. Errors: those of `dial`, and `rate_limited` if the sandbox or its team has no place. */
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
