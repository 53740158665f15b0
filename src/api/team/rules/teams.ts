import { AtollError } from '../../../base/error.ts';
import { teamsOf } from '../store/member.ts';
import { createListedKey } from '../../credential/rules/api-keys.ts';
import type { HeldCredential } from '../../credential/caller.ts';
import type { RateLimiter } from '../../credential/rules/rate-limit.ts';
import type { Accounts } from './provision-team.ts';
import type { TeamRecord, UserRecord } from '../record.ts';

/** How often a user may list teams, per second on average: it makes keys, and makes every process read them again. */
const listingsPerSecond = 5;

/**
 * The teams of a user, each with a key made for this answer: only digests are stored, so an existing key can't be shown
 * again, and a client that signs in by this route needs one. A key can do more than a viewer may, so teams in which the
 * user is a viewer are left out, and those that the user leaves meanwhile. `held`: the credential of the user's
 * request. Throws `rate_limited`.
 */
export async function listTeamsWithKeys(
  deps: Accounts & { rateLimiter: RateLimiter },
  user: UserRecord,
  held: HeldCredential,
): Promise<Array<{ team: TeamRecord; apiKey: string; isDefault: boolean }>> {
  deps.rateLimiter.take(`teams of ${user.userId}`, listingsPerSecond, 'listings of teams');
  const listed = [];
  for (const { team, isDefault, role } of await teamsOf(deps.db, user.userId)) {
    if (role === 'viewer') continue;
    const apiKey = await createListedKey(deps, team, user, held).catch(unlessForbidden);
    if (apiKey !== null) listed.push({ team, apiKey, isDefault });
  }
  deps.credentials.clear();
  return listed;
}

function unlessForbidden(error: unknown): null {
  if (error instanceof AtollError && error.code === 'forbidden') return null;
  throw error;
}
