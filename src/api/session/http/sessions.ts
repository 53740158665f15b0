import { Type } from '@sinclair/typebox';
import { formatTime } from '../../../base/time.ts';
import { ListedSession } from '../../../protocol/api/session.ts';
import type { Clock } from '../../../base/clock.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';
import type { Db } from '../../database/db.ts';
import { route } from '../../http/route.ts';
import { endSession, liveSessions } from '../rules/own-sessions.ts';

/** `GET /sessions` */
export const listSessionsRoute = route({
  operationId: 'listSessions',
  method: 'GET',
  path: '/sessions',
  summary: 'List own sessions, newest first',
  auth: 'session',
  responses: { 200: { description: 'The sessions', schema: Type.Array(ListedSession) } },
  async handle(deps: { clock: Clock; db: Db }, { caller }) {
    const sessions = await liveSessions(deps, caller.session);
    return {
      status: 200,
      body: sessions.map(({ sessionId, createdAtUs, lastUsedAtUs, address, userAgent }) => ({
        sessionID: sessionId,
        current: sessionId === caller.session.sessionId,
        createdAt: formatTime(createdAtUs),
        lastUsedAt: formatTime(lastUsedAtUs),
        address,
        userAgent,
      })),
    };
  },
});

/** `DELETE /sessions/{sessionID}` */
export const revokeSessionRoute = route({
  operationId: 'revokeSession',
  method: 'DELETE',
  path: '/sessions/{sessionID}',
  summary: 'End an own session, or any as the operator; it is refused from the next request on',
  auth: 'session',
  params: Type.Object({ sessionID: Type.String() }),
  responses: { 204: { description: 'Ended' } },
  errors: [404],
  async handle(deps: { credentials: CredentialCache; db: Db }, { caller, params: { sessionID }, audit }) {
    audit({ target: `session:${sessionID}` });
    await endSession(deps, caller.session, sessionID);
    return { status: 204 };
  },
});
