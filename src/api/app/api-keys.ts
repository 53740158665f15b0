import { AtollError } from '../../base/error.ts';
import { deleteApiKey, listApiKeys, renameApiKey } from '../store/api-key.ts';
import type { ApiKeyRecord } from '../store/api-key.ts';
import type { TeamRecord } from '../store/team.ts';
import { findUsers } from '../store/user.ts';
import type { UserRecord } from '../store/user.ts';
import type { Accounts } from './provision-team.ts';
import { isUuid } from './template-reference.ts';

/** A team's keys, the oldest first, each with who made it. */
export async function listTeamKeys(app: Accounts, team: TeamRecord): Promise<Array<{ key: ApiKeyRecord; createdBy: UserRecord | null }>> {
  const keys = await listApiKeys(app.store.db, team.teamId);
  const users = await findUsers(app.store.db, [...new Set(keys.flatMap(key => key.createdBy ?? []))]);
  return keys.map(key => ({ key, createdBy: key.createdBy === null ? null : (users.get(key.createdBy) ?? null) }));
}

/** Throws `not_found` where the team has no key with this ID, `invalid` for a text that is no ID. */
export async function renameTeamKey(app: Accounts, team: TeamRecord, keyId: string, name: string): Promise<void> {
  checkId(keyId);
  if (!(await renameApiKey(app.store.db, team.teamId, keyId, name))) throw keyNotFound(keyId);
}

/** Revokes a key: the next request with it is refused. Throws like `renameTeamKey`. */
export async function revokeTeamKey(app: Accounts, team: TeamRecord, keyId: string): Promise<void> {
  checkId(keyId);
  const removed = await deleteApiKey(app.store.db, team.teamId, keyId);
  app.credentials.clear();
  if (!removed) throw keyNotFound(keyId);
}

function checkId(keyId: string): void {
  if (!isUuid(keyId)) throw new AtollError('invalid', `apiKeyID: "${keyId}" is not the ID of a key (a UUID)`);
}

function keyNotFound(keyId: string): AtollError {
  return new AtollError('not_found', `API key "${keyId}" was not found`);
}
