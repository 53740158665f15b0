import type { Selectable } from 'kysely';
import type { Db } from '../../database/db.ts';
import type { SessionTable } from '../../database/account-tables.ts';
import type { SessionRecord } from '../record.ts';

/** Writes a new session. */
export async function insertSession(db: Db, session: SessionRecord): Promise<void> {
  await db
    .insertInto('sessions')
    .values({
      session_id: session.sessionId,
      digest: session.digest,
      user_id: session.userId,
      is_operator: session.isOperator ? 1 : 0,
      created_at_us: session.createdAtUs,
      last_used_at_us: session.lastUsedAtUs,
      proven_at_us: session.provenAtUs,
      address: session.address,
      user_agent: session.userAgent,
    })
    .execute();
}

/** The session with this digest, whether or not it has expired. */
export async function findSession(db: Db, digest: string): Promise<SessionRecord | null> {
  const row = await db.selectFrom('sessions').selectAll().where('digest', '=', digest).executeTakeFirst();
  return row ? sessionOfRow(row) : null;
}

/** The sessions of a user, or those of the operator without an account, the newest first. */
export async function listSessions(db: Db, userId: string | null): Promise<SessionRecord[]> {
  const rows = await db
    .selectFrom('sessions')
    .selectAll()
    .where('user_id', userId === null ? 'is' : '=', userId)
    .orderBy('created_at_us', 'desc')
    .orderBy('session_id')
    .execute();
  return rows.map(sessionOfRow);
}

/** Ends a session; with `userId`, one of that user. False where there is none with this ID. */
export async function deleteSession(db: Db, sessionId: string, userId?: string | null): Promise<boolean> {
  let query = db.deleteFrom('sessions').where('session_id', '=', sessionId);
  if (userId !== undefined) query = query.where('user_id', userId === null ? 'is' : '=', userId);
  return (await query.executeTakeFirst()).numDeletedRows > 0n;
}

/** Ends all but the `keep` newest sessions of a user, or of the operator without an account. Answers how many ended. */
export async function pruneSessionsOf(db: Db, userId: string | null, keep: number): Promise<bigint> {
  const kept = db
    .selectFrom('sessions')
    .select('session_id')
    .where('user_id', userId === null ? 'is' : '=', userId)
    .orderBy('created_at_us', 'desc')
    .limit(keep);
  const ended = db
    .deleteFrom('sessions')
    .where('user_id', userId === null ? 'is' : '=', userId)
    .where('session_id', 'not in', kept);
  return (await ended.executeTakeFirst()).numDeletedRows;
}

/** Records when a session proved whose it is. */
export async function setProven(db: Db, sessionId: string, atUs: number): Promise<void> {
  await db.updateTable('sessions').set({ proven_at_us: atUs }).where('session_id', '=', sessionId).execute();
}

/** Ends the sessions of a user. */
export async function deleteSessionsOf(db: Db, userId: string): Promise<void> {
  await db.deleteFrom('sessions').where('user_id', '=', userId).execute();
}

/** Records when sessions were last used, by ID. */
export async function touchSessions(db: Db, uses: ReadonlyMap<string, number>): Promise<void> {
  for (const [id, atUs] of uses)
    await db.updateTable('sessions').set({ last_used_at_us: atUs }).where('session_id', '=', id).execute();
}

/** Forgets sessions that began before `createdBeforeUs` or were last used before `usedBeforeUs`. */
export async function pruneSessions(
  db: Db,
  { createdBeforeUs, usedBeforeUs }: { createdBeforeUs: number; usedBeforeUs: number },
): Promise<void> {
  await db
    .deleteFrom('sessions')
    .where(where =>
      where.or([where('created_at_us', '<', createdBeforeUs), where('last_used_at_us', '<', usedBeforeUs)]),
    )
    .execute();
}

function sessionOfRow(row: Selectable<SessionTable>): SessionRecord {
  return {
    sessionId: row.session_id,
    digest: row.digest,
    userId: row.user_id,
    isOperator: row.is_operator === 1,
    createdAtUs: row.created_at_us,
    lastUsedAtUs: row.last_used_at_us,
    provenAtUs: row.proven_at_us,
    address: row.address,
    userAgent: row.user_agent,
  };
}
