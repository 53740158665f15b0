import type { Selectable } from 'kysely';
import type { Db } from '../../database/db.ts';
import type { SecretTable } from '../../database/schema.ts';
import { behind } from '../../database/cursor.ts';
import type { Cursor } from '../../database/cursor.ts';
import type { SecretRecord } from '../record.ts';

function secretOfRow(row: Selectable<SecretTable>): SecretRecord {
  return {
    secretId: row.secret_id,
    teamId: row.team_id,
    name: row.name,
    currentVersion: row.current_version,
    sealedValue: row.sealed_value,
    metadata: JSON.parse(row.metadata_json) as Record<string, string>,
    createdAtUs: row.created_at_us,
    updatedAtUs: row.updated_at_us,
  };
}

/** Writes a new secret. False when the team has one of this name. */
export async function insertSecret(db: Db, secret: SecretRecord): Promise<boolean> {
  const row = await db
    .insertInto('secrets')
    .values({
      secret_id: secret.secretId,
      team_id: secret.teamId,
      name: secret.name,
      current_version: secret.currentVersion,
      sealed_value: secret.sealedValue,
      metadata_json: JSON.stringify(secret.metadata),
      created_at_us: secret.createdAtUs,
      updated_at_us: secret.updatedAtUs,
    })
    .onConflict(conflict => conflict.columns(['team_id', 'name']).doNothing())
    .returning('secret_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** How many secrets a team has. */
export async function countSecrets(db: Db, teamId: string): Promise<number> {
  const { count } = await db
    .selectFrom('secrets')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('team_id', '=', teamId)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** A team's secret by ID or name: no name looks like an ID. */
export async function findSecret(db: Db, teamId: string, idOrName: string): Promise<SecretRecord | null> {
  const row = await db
    .selectFrom('secrets')
    .selectAll()
    .where('team_id', '=', teamId)
    .where(where => where.or([where('secret_id', '=', idOrName), where('name', '=', idOrName)]))
    .executeTakeFirst();
  return row ? secretOfRow(row) : null;
}

/** A team's secrets after `after`, newest first. */
export async function listSecrets(
  db: Db,
  teamId: string,
  page: { after?: Cursor; limit: number },
): Promise<SecretRecord[]> {
  let query = db.selectFrom('secrets').selectAll().where('team_id', '=', teamId);
  const { after } = page;
  if (after) query = query.where(behind(after, 'created_at_us', 'secret_id'));
  const rows = await query.orderBy('created_at_us', 'desc').orderBy('secret_id', 'desc').limit(page.limit).execute();
  return rows.map(secretOfRow);
}

/** Replaces the value of a secret that still has `version`. Null when another change came first, or it is gone. */
export async function replaceSecretValue(
  db: Db,
  secret: { secretId: string; version: number },
  next: { sealedValue: string; metadata: Record<string, string>; nowUs: number },
): Promise<SecretRecord | null> {
  const row = await db
    .updateTable('secrets')
    .set({
      current_version: secret.version + 1,
      sealed_value: next.sealedValue,
      metadata_json: JSON.stringify(next.metadata),
      updated_at_us: next.nowUs,
    })
    .where('secret_id', '=', secret.secretId)
    .where('current_version', '=', secret.version)
    .returningAll()
    .executeTakeFirst();
  return row ? secretOfRow(row) : null;
}

/** Deletes a secret. False where there is none. */
export async function deleteSecret(db: Db, secretId: string): Promise<boolean> {
  const result = await db.deleteFrom('secrets').where('secret_id', '=', secretId).executeTakeFirst();
  return result.numDeletedRows > 0n;
}
