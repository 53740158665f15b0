import { sql } from 'kysely';
import type { RawBuilder } from 'kysely';
import type { Db } from '../../database/db.ts';
import type { Tables } from '../../database/schema.ts';

/** The most rows that one statement removes, so that others can write in between. */
const removedAtOnce = 1_000;

/** A table of past things: each row belongs to a team, has a time, and is removed some day. */
type History = {
  table: 'audit_log' | 'idempotency_keys' | 'past_sandboxes' | 'repeated_requests';
  /** Tells apart rows of the same team and time. */
  key: string;
  /** When a row was written, microseconds since the epoch. */
  at: string;
};

/** The tables of history. */
export const histories = {
  audit: { table: 'audit_log', key: 'entry_id', at: 'at_us' },
  idempotencyKeys: { table: 'idempotency_keys', key: 'idempotency_key', at: 'created_at_us' },
  repeatedRequests: { table: 'repeated_requests', key: 'idempotency_key', at: 'created_at_us' },
  pastSandboxes: { table: 'past_sandboxes', key: 'sandbox_id', at: 'ended_at_us' },
} as const satisfies Record<string, History & { table: keyof Tables }>;

/**
 * Removes rows from before `beforeUs`, and each team's oldest beyond `perTeamMax`; rows without a team count as one
 * team's. Uses statements of `removedAtOnce` rows.
 */
export async function pruneHistory(
  db: Db,
  { table, key, at }: History,
  { beforeUs, perTeamMax }: { beforeUs: number; perTeamMax: number },
): Promise<void> {
  const [from, keyOf, atOf] = [sql.table(table), sql.ref(key), sql.ref(at)];
  const remove = (which: RawBuilder<unknown>) =>
    inBatches(async limit => {
      const some = sql`select ${keyOf} from ${from} where ${which} limit ${sql.lit(limit)}`;
      const { numAffectedRows } = await sql`delete from ${from} where ${which} and ${keyOf} in (${some})`.execute(db);
      return numAffectedRows ?? 0n;
    });
  await remove(sql`${atOf} < ${beforeUs}`);
  const teams = await db.selectFrom('teams').select('team_id').execute();
  for (const teamId of [...teams.map(team => team.team_id), null]) {
    const own = teamId === null ? sql`team_id is null` : sql`team_id = ${teamId}`;
    const { rows } = await sql<{ at: number; key: string }>`
      select ${atOf} as at, ${keyOf} as key from ${from} where ${own}
      order by ${atOf} desc, ${keyOf} desc limit 1 offset ${sql.lit(perTeamMax)}
    `.execute(db);
    const [newestToGo] = rows;
    if (newestToGo) await remove(sql`${own} and (${atOf}, ${keyOf}) <= (${newestToGo.at}, ${newestToGo.key})`);
  }
}

/** Calls `remove`, which removes up to `limit` rows and answers how many, until it has found fewer. */
export async function inBatches(remove: (limit: number) => Promise<bigint>): Promise<void> {
  for (;;) if ((await remove(removedAtOnce)) < removedAtOnce) return;
}
