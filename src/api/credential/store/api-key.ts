import { sql } from 'kysely';
import type { Db } from '../../database/db.ts';
import { mapperOf } from '../../record/column.ts';
import type { Role } from '../../../protocol/api/member.ts';
import { teamOfRow } from '../../team/store/team.ts';
import type { TeamRecord } from '../../team/record.ts';
import { apiKeyColumns, listedKeyName, type ApiKeyRecord } from '../record.ts';

const { recordOf, rowOf } = mapperOf(apiKeyColumns);

/** Writes a new API key. */
export async function insertApiKey(db: Db, key: ApiKeyRecord): Promise<void> {
  await db.insertInto('api_keys').values(rowOf(key)).execute();
}

/**
 * The key with this digest, its team, and its role. A key that listing teams made has the member's role, and is not
 * valid where there is no such member.
 */
export async function findApiKey(
  db: Db,
  digest: string,
): Promise<{ keyId: string; team: TeamRecord; role: Role } | null> {
  const row = await db
    .selectFrom('api_keys')
    .innerJoin('teams', 'teams.team_id', 'api_keys.team_id')
    .leftJoin('team_members', member =>
      member
        .onRef('team_members.team_id', '=', 'api_keys.team_id')
        .onRef('team_members.user_id', '=', 'api_keys.created_by'),
    )
    .selectAll('teams')
    .select(['key_id', 'api_keys.name as key_name', 'role'])
    .where('digest', '=', digest)
    .executeTakeFirst();
  if (!row) return null;
  const role = row.key_name === listedKeyName ? row.role : 'admin';
  return role && { keyId: row.key_id, team: teamOfRow(row), role };
}

/** Records when credentials were last used, by ID. */
export async function touchCredentials(
  db: Db,
  table: 'api_keys' | 'access_tokens',
  idColumn: 'key_id' | 'token_id',
  uses: ReadonlyMap<string, number>,
): Promise<void> {
  for (const [id, atUs] of uses) {
    await db.updateTable(table).set({ last_used_at_us: atUs }).where(sql.ref(idColumn), '=', id).execute();
  }
}

/** A team's keys, the oldest first. */
export async function listApiKeys(db: Db, teamId: string): Promise<ApiKeyRecord[]> {
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where('team_id', '=', teamId)
    .orderBy('created_at_us')
    .orderBy('key_id')
    .execute();
  return rows.map(recordOf);
}

/** How many keys a team has that have another name than `except`. */
export async function countApiKeys(db: Db, teamId: string, except: string): Promise<number> {
  const { count } = await db
    .selectFrom('api_keys')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('team_id', '=', teamId)
    .where('name', '!=', except)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Removes a team's key. Answers false where there is none with this ID. */
export async function deleteApiKey(db: Db, teamId: string, keyId: string): Promise<boolean> {
  const result = await db
    .deleteFrom('api_keys')
    .where('team_id', '=', teamId)
    .where('key_id', '=', keyId)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Renames a team's key. False where there is none with this ID. */
export async function renameApiKey(db: Db, teamId: string, keyId: string, name: string): Promise<boolean> {
  const result = await db
    .updateTable('api_keys')
    .set({ name })
    .where('team_id', '=', teamId)
    .where('key_id', '=', keyId)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Removes all but the `keep` newest keys with this name that a user made for a team. */
export async function pruneApiKeys(
  db: Db,
  of: { teamId: string; createdBy: string; name: string },
  keep: number,
): Promise<void> {
  const kept = db
    .selectFrom('api_keys')
    .select('key_id')
    .where('team_id', '=', of.teamId)
    .where('created_by', '=', of.createdBy)
    .where('name', '=', of.name)
    .orderBy('created_at_us', 'desc')
    .limit(keep);
  await db
    .deleteFrom('api_keys')
    .where('team_id', '=', of.teamId)
    .where('created_by', '=', of.createdBy)
    .where('name', '=', of.name)
    .where('key_id', 'not in', kept)
    .execute();
}
