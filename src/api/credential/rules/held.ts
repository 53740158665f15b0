import { AtollError } from '../../../base/error.ts';
import type { Db } from '../../database/db.ts';
import { findSession } from '../../session/store/sessions.ts';
import type { HeldCredential } from '../caller.ts';
import { findAccessToken } from '../store/access-token.ts';

/**
 * Throws `unauthenticated` where a credential has ended since its request was admitted: whatever the request makes
 * would outlive it. `db` is a transaction that has locked the user.
 */
export async function requireHeld(db: Db, { kind, digest }: HeldCredential): Promise<void> {
  const known = kind === 'session' ? await findSession(db, digest) : await findAccessToken(db, digest);
  if (!known) throw new AtollError('unauthenticated', 'The session or access token of this request has ended');
}
