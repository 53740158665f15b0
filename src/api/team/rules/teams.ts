import { pruneApiKeys } from '../../credential/store/api-key.ts';
import type { Db } from '../../database/db.ts';
import { teamsOf } from '../store/member.ts';
import { createApiKey } from '../../credential/rules/api-keys.ts';
import type { Accounts } from './provision-team.ts';
import type { TeamRecord, UserRecord } from '../record.ts';

/** The name of the keys that `GET /teams` makes. */
const listedKeyName = 'made by listing teams';
/** Of these keys a user keeps so many for each team; older ones end. */
const listedKeysMax = 20;

/** Ends the keys for a team that listing teams made for a user. */
export const endListedKeys = (db: Db, teamId: string, userId: string): Promise<void> =>
  pruneApiKeys(db, { teamId, createdBy: userId, name: listedKeyName }, 0);

/**
 * The teams of a user, each with a key that was made for this answer: only digests are stored, so a key that exists
 * can't be told again, and a client that signs in by this route needs one. A key does more than a viewer may: teams of
 * which the user is one are left out.
 */
export async function listTeamsWithKeys(
  deps: Accounts,
  user: UserRecord,
): Promise<Array<{ team: TeamRecord; apiKey: string; isDefault: boolean }>> {
  const listed = [];
  for (const { team, isDefault, role } of await teamsOf(deps.db, user.userId)) {
    if (role === 'viewer') continue;
    const { text } = await createApiKey(deps, team, listedKeyName, user.userId);
    await pruneApiKeys(deps.db, { teamId: team.teamId, createdBy: user.userId, name: listedKeyName }, listedKeysMax);
    listed.push({ team, apiKey: text, isDefault });
  }
  deps.credentials.clear();
  return listed;
}
