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
/** Sessions of one user, and of the operator without account; beyond, the oldest end. */
const sessionsMax = 100;

/** Whose session it is, and with which rights. */
export type Who = Pick<SessionRecord, 'userId' | 'isOperator'>;

/** From where a session comes. */
export type From = { address: string; userAgent: string };

/** A session that has begun, and the value of its cookie, which is kept nowhere. */
export type Begun = { session: SessionRecord; value: string };

/** Begins a session of somebody who has just proven who that is. The oldest of more than `sessionsMax` end. */
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
