import type { Db } from '../../database/db.ts';

/** A request that its client may repeat, with what distinguishes it from others. */
export type RepeatedRequest = { teamId: string; operation: string; key: string };

/** What is known of a request: its answer, encrypted, or else the process that carries it out. */
type KnownRequest = {
  requestDigest: string;
  sealedAnswer: string | null;
  replicaId: string;
  /** The process that carries it out reports that it is alive. */
  isAlive: boolean;
};

/** Takes a request for this process to carry out; false where its key is taken already. */
export async function takeRequest(
  db: Db,
  { teamId, operation, key }: RepeatedRequest,
  { requestDigest, replicaId, nowUs }: { requestDigest: string; replicaId: string; nowUs: number },
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('repeated_requests')
    .values({
      team_id: teamId,
      operation,
      idempotency_key: key,
      request_digest: requestDigest,
      replica_id: replicaId,
      sealed_answer: null,
      created_at_us: nowUs,
    })
    .onConflict(conflict => conflict.doNothing())
    .executeTakeFirst();
  return (numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** What is known of a request; undefined where no process has taken it. */
export async function findRequest(
  db: Db,
  { teamId, operation, key }: RepeatedRequest,
  nowUs: number,
): Promise<KnownRequest | undefined> {
  const row = await db
    .selectFrom('repeated_requests')
    .leftJoin('replicas', 'replicas.replica_id', 'repeated_requests.replica_id')
    .select(['request_digest', 'sealed_answer', 'repeated_requests.replica_id', 'until_us'])
    .where('team_id', '=', teamId)
    .where('operation', '=', operation)
    .where('idempotency_key', '=', key)
    .executeTakeFirst();
  if (!row) return undefined;
  return {
    requestDigest: row.request_digest,
    sealedAnswer: row.sealed_answer,
    replicaId: row.replica_id,
    isAlive: row.until_us !== null && row.until_us > nowUs,
  };
}

/** Stores the answer of a request; or that no process carries it out any more, and its effect is unknown. */
export async function endRequest(
  db: Db,
  { teamId, operation, key }: RepeatedRequest,
  end: { sealedAnswer: string } | 'unknown',
): Promise<void> {
  await db
    .updateTable('repeated_requests')
    .set(end === 'unknown' ? { replica_id: '' } : { sealed_answer: end.sealedAnswer })
    .where('team_id', '=', teamId)
    .where('operation', '=', operation)
    .where('idempotency_key', '=', key)
    .execute();
}

/** Frees the key of a request that came to nothing. */
export async function forgetRequest(db: Db, { teamId, operation, key }: RepeatedRequest): Promise<void> {
  await db
    .deleteFrom('repeated_requests')
    .where('team_id', '=', teamId)
    .where('operation', '=', operation)
    .where('idempotency_key', '=', key)
    .execute();
}
