import { pruneApiKeys } from '../store/api-key.ts';
import { teamsOf } from '../store/member.ts';
import type { TeamRecord } from '../store/team.ts';
import type { UserRecord } from '../store/user.ts';
import { createApiKey } from './provision-team.ts';
import type { Accounts } from './provision-team.ts';

/** The name of the keys that `GET /teams` makes. */
const listedKeyName = 'made by listing teams';
/** Of these keys a user keeps so many for each team; older ones end. */
const listedKeysMax = 20;

/**
 * The teams of a user, each with a key that was made for this answer: only digests are stored, so a key that exists
 * can't be told again, and a client that signs in by this route needs one.
 */
export async function listTeamsWithKeys(
  app: Accounts,
  user: UserRecord,
): Promise<Array<{ team: TeamRecord; apiKey: string; isDefault: boolean }>> {
  const listed = [];
  for (const { team, isDefault } of await teamsOf(app.store.db, user.userId)) {
    const { text } = await createApiKey(app, team, listedKeyName, user.userId);
    await pruneApiKeys(app.store.db, { teamId: team.teamId, createdBy: user.userId, name: listedKeyName }, listedKeysMax);
    listed.push({ team, apiKey: text, isDefault });
  }
  app.credentials.clear();
  return listed;
}
