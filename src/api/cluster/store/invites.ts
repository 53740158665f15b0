import type { Db } from '../../database/db.ts';

/** An invitation as it is stored. */
type StoredInvite = { tokenId: string; sealedKey: string; expiresAtUs: number };

/** Stores an invitation, and removes those that have expired by `nowUs`. */
export async function keepInvite(db: Db, invite: StoredInvite, nowUs: number): Promise<void> {
  await db.deleteFrom('cluster_invites').where('expires_at_us', '<=', nowUs).execute();
  await db
    .insertInto('cluster_invites')
    .values({ token_id: invite.tokenId, sealed_key: invite.sealedKey, expires_at_us: invite.expiresAtUs })
    .execute();
}

/** The sealed key of an invitation that is valid at `nowUs`; null for any other. */
export async function findInvite(db: Db, tokenId: string, nowUs: number): Promise<string | null> {
  const row = await db
    .selectFrom('cluster_invites')
    .select('sealed_key')
    .where('token_id', '=', tokenId)
    .where('expires_at_us', '>', nowUs)
    .executeTakeFirst();
  return row?.sealed_key ?? null;
}

/** Uses up an invitation. False: somebody else has. */
export async function takeInvite(db: Db, tokenId: string): Promise<boolean> {
  const row = await db
    .deleteFrom('cluster_invites')
    .where('token_id', '=', tokenId)
    .returning('token_id')
    .executeTakeFirst();
  return row !== undefined;
}
