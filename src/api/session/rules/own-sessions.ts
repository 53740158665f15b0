import type { Clock } from '../../../base/clock.ts';
import { AtollError } from '../../../base/error.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';
import type { Db } from '../../database/db.ts';
import type { SessionRecord } from '../record.ts';
import { deleteSession, listSessions } from '../store/sessions.ts';
import { isLive } from './lifetime.ts';

/** The valid sessions of this session's owner, the newest first. */
export async function liveSessions(
  { clock, db }: { clock: Clock; db: Db },
  { userId }: SessionRecord,
): Promise<SessionRecord[]> {
  const nowUs = clock();
  return (await listSessions(db, userId)).filter(session => isLive(session, nowUs));
}

/**
 * Ends a session from the next request on, in every process. A user may end their own, an operator any. Throws
 * `not_found` where there is none that `by` may end.
 */
export async function endSession(
  { credentials, db }: { credentials: CredentialCache; db: Db },
  by: SessionRecord,
  sessionId: string,
): Promise<void> {
  if (!(await deleteSession(db, sessionId, by.isOperator ? undefined : by.userId)))
    throw new AtollError('not_found', `There is no session ${sessionId} of yours`);
  credentials.clear();
}
