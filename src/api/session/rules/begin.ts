import { microsPerSecond } from '../../../base/clock.ts';
import { newUuid } from '../../../base/id.ts';
import { randomHex, sha256Hex } from '../../../base/crypto/secret.ts';
import type { Clock } from '../../../base/clock.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';
import type { Db } from '../../database/db.ts';
import type { SessionRecord } from '../record.ts';
import { insertSession, pruneSessions, pruneSessionsOf } from '../store/sessions.ts';
import { sessionIdleSeconds, sessionSeconds } from './lifetime.ts';

const sessionBytes = 32;
const userAgentCharactersMax = 300;
/** Sessions of one user, or of the operator without an account; beyond that, the oldest end. */
const sessionsMax = 100;

/** The owner of a session, and its rights. */
export type Who = Pick<SessionRecord, 'userId' | 'isOperator'>;

/** Where a session comes from. */
export type From = { address: string; userAgent: string };

/** A session that has begun, and the value of its cookie, which is kept nowhere. */
export type Begun = { session: SessionRecord; value: string };

/** Begins a session of a person who has just proven their identity. The oldest beyond `sessionsMax` end. */
export async function beginSession(
  { clock, credentials, db }: { clock: Clock; credentials: CredentialCache; db: Db },
  who: Who,
  from: From,
): Promise<Begun> {
  const nowUs = clock();
  const value = randomHex(sessionBytes);
  const session: SessionRecord = {
    ...who,
    sessionId: newUuid(),
    digest: sha256Hex(value),
    createdAtUs: nowUs,
    lastUsedAtUs: nowUs,
    provenAtUs: nowUs,
    address: from.address,
    userAgent: from.userAgent.slice(0, userAgentCharactersMax),
  };
  await pruneSessions(db, {
    createdBeforeUs: nowUs - sessionSeconds * microsPerSecond,
    usedBeforeUs: nowUs - sessionIdleSeconds * microsPerSecond,
  });
  await insertSession(db, session);
  if ((await pruneSessionsOf(db, who.userId, sessionsMax)) > 0n) credentials.clear();
  return { session, value };
}
