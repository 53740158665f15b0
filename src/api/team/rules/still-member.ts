import { AtollError } from '../../../base/error.ts';
import { roles } from '../../../protocol/api/member.ts';
import type { Role } from '../../../protocol/api/member.ts';
import type { Db } from '../../database/db.ts';
import { findRole } from '../store/member.ts';

/**
 * Throws `forbidden` where a user no longer has the role in the team: a member who is removed or demoted while a
 * request is under way must not leave a way in behind. `db` is a transaction that has locked the team.
 */
export async function requireStill(db: Db, teamId: string, userId: string, least: Role): Promise<void> {
  const role = await findRole(db, teamId, userId);
  if (role === null || roles.indexOf(role) < roles.indexOf(least))
    throw new AtollError('forbidden', `This takes the role "${least}" in the team, which you have no more`);
}
