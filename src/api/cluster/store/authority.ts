import type { Db } from '../../database/db.ts';

/** The cluster's authority as it is stored. */
type StoredAuthority = { certificate: string; sealedKey: string };

const place = 1;

/** The authority; null before it was made. */
export async function findAuthority(db: Db): Promise<StoredAuthority | null> {
  const row = await db.selectFrom('cluster_authority').selectAll().executeTakeFirst();
  return row ? { certificate: row.certificate, sealedKey: row.sealed_key } : null;
}

/** Stores an authority, unless another process has stored one before. */
export async function keepAuthority(db: Db, { certificate, sealedKey }: StoredAuthority): Promise<void> {
  await db
    .insertInto('cluster_authority')
    .values({ place, certificate, sealed_key: sealedKey })
    .onConflict(conflict => conflict.column('place').doNothing())
    .execute();
}
