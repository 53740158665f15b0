import type { Clock } from '../../../base/clock.ts';
import { AtollError } from '../../../base/error.ts';
import { newUuid, isUuid } from '../../../base/id.ts';
import { newCredential } from './credential.ts';
import { countApiKeys, deleteApiKey, insertApiKey, listApiKeys, pruneApiKeys, renameApiKey } from '../store/api-key.ts';
import { requireStill } from '../../team/rules/still-member.ts';
import { lockTeam, lockUser } from '../../team/store/lock.ts';
import { requireHeld } from './held.ts';
import type { HeldCredential } from '../caller.ts';
import { findUsers } from '../../team/store/user.ts';
import { listedKeyName } from '../record.ts';
import type { ApiKeyRecord } from '../record.ts';
import type { TeamRecord, UserRecord } from '../../team/record.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { CredentialCache } from './cache.ts';

/** Keys of this kind that a user keeps for each team; older ones end. */
const listedKeysMax = 20;
/** Keys of a team, not counting those that listing teams makes. */
const apiKeysMax = 1_000;

/**
 * Makes an API key for a team. `text` is the key itself, which is shown only now. `createdBy`: the member who makes it.
 * Throws `invalid` for a name reserved for the platform, `rate_limited` where the team has `keysMax`, `forbidden` where
 * the member is no longer an admin.
 */
export async function createApiKey(
  { clock, db }: { clock: Clock; db: Db },
  team: TeamRecord,
  name: string,
  createdBy: string | null = null,
  keysMax: number = apiKeysMax,
): Promise<{ key: ApiKeyRecord; text: string }> {
  refuseReserved(name);
  const { text, record } = newCredential('apiKey', name, clock());
  const key = { ...record, keyId: newUuid(), teamId: team.teamId, createdBy };
  await inTransaction(db, async db => {
    await lockTeam(db, team.teamId);
    if (createdBy !== null) await requireStill(db, team.teamId, createdBy, 'admin');
    if ((await countApiKeys(db, team.teamId, listedKeyName)) >= keysMax)
      throw new AtollError(
        'rate_limited',
        `The team has ${keysMax} API keys, which is the most (apiKeysMax): delete one first`,
      );
    await insertApiKey(db, key);
  });
  return { key, text };
}

/**
 * Makes a key for an answer to `GET /teams`. The user's oldest such keys end beyond `listedKeysMax`. Throws `forbidden`
 * where the user may no longer use any, `unauthenticated` where the credential of the request has ended.
 */
export async function createListedKey(
  { clock, db }: { clock: Clock; db: Db },
  { teamId }: TeamRecord,
  { userId }: UserRecord,
  held: HeldCredential,
): Promise<string> {
  const { text, record } = newCredential('apiKey', listedKeyName, clock());
  await inTransaction(db, async db => {
    await lockTeam(db, teamId);
    await lockUser(db, userId);
    await requireHeld(db, held);
    await requireStill(db, teamId, userId, 'developer');
    await insertApiKey(db, { ...record, keyId: newUuid(), teamId, createdBy: userId });
    await pruneApiKeys(db, { teamId, createdBy: userId, name: listedKeyName }, listedKeysMax);
  });
  return text;
}

/** Ends the keys for a team that listing teams made for a user. */
export const endListedKeys = (db: Db, teamId: string, userId: string): Promise<void> =>
  pruneApiKeys(db, { teamId, createdBy: userId, name: listedKeyName }, 0);

function refuseReserved(name: string): void {
  if (name === listedKeyName)
    throw new AtollError('invalid', `name: "${listedKeyName}" is for the keys that GET /teams makes`);
}

/** Makes an API key for a member of the team, and records who that is. */
export async function createMembersKey(
  deps: { clock: Clock; db: Db },
  team: TeamRecord,
  name: string,
  userId: string | null,
): Promise<{ key: ApiKeyRecord; text: string; createdBy: UserRecord | null }> {
  const made = await createApiKey(deps, team, name, userId);
  const createdBy = userId === null ? null : ((await findUsers(deps.db, [userId])).get(userId) ?? null);
  return { ...made, createdBy };
}

/** A team's keys, the oldest first, each with its maker. */
export async function listTeamKeys(
  db: Db,
  team: TeamRecord,
): Promise<Array<{ key: ApiKeyRecord; createdBy: UserRecord | null }>> {
  const keys = await listApiKeys(db, team.teamId);
  const users = await findUsers(db, [...new Set(keys.flatMap(key => key.createdBy ?? []))]);
  return keys.map(key => ({ key, createdBy: key.createdBy === null ? null : (users.get(key.createdBy) ?? null) }));
}

/**
 * Renames a key. Throws `not_found` where the team has no key with this ID, `invalid` for a text that is not an ID,
 * `conflict` for a key that listing teams has made: under another name it could do more than the member may.
 */
export async function renameTeamKey(db: Db, team: TeamRecord, keyId: string, name: string): Promise<void> {
  checkId(keyId);
  refuseReserved(name);
  const renamed = await inTransaction(db, async db => {
    const key = (await listApiKeys(db, team.teamId)).find(one => one.keyId === keyId);
    if (key?.name === listedKeyName)
      throw new AtollError(
        'conflict',
        `API key "${keyId}" was made by GET /teams and keeps its name: make another one`,
      );
    return renameApiKey(db, team.teamId, keyId, name);
  });
  if (!renamed) throw keyNotFound(keyId);
}

/**
 * Revokes a key: the next request with it is refused. Throws `not_found` where the team has no key with this ID,
 * `invalid` for a text that is not an ID.
 */
export async function revokeTeamKey(
  { credentials, db }: { credentials: CredentialCache; db: Db },
  team: TeamRecord,
  keyId: string,
): Promise<void> {
  checkId(keyId);
  const removed = await deleteApiKey(db, team.teamId, keyId);
  credentials.clear();
  if (!removed) throw keyNotFound(keyId);
}

function checkId(keyId: string): void {
  if (!isUuid(keyId)) throw new AtollError('invalid', `apiKeyID: "${keyId}" is not the ID of a key (a UUID)`);
}

function keyNotFound(keyId: string): AtollError {
  return new AtollError('not_found', `API key "${keyId}" was not found`);
}
