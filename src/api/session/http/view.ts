import { formatTime } from '../../../base/time.ts';
import type { Session } from '../../../protocol/api/session.ts';
import type { KnownSession } from '../record.ts';
import { sessionEndUs } from '../rules/lifetime.ts';

/** A session as the signed-in person sees it. */
export function sessionView({ session, user, memberships }: KnownSession): Session {
  return {
    sessionID: session.sessionId,
    user: user && { id: user.userId, name: user.name, email: user.email, hasPassword: user.hasPassword },
    operator: session.isOperator,
    teams: memberships.map(({ team, role }) => ({ teamID: team.teamId, name: team.name, slug: team.slug, role })),
    expiresAt: formatTime(sessionEndUs(session)),
  };
}
