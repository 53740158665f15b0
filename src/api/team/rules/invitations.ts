import { AtollError } from '../../../base/error.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { newUuid } from '../../../base/id.ts';
import { randomHex, sha256Hex } from '../../../base/crypto/secret.ts';
import { invitationCodeCharacters } from '../../../protocol/api/member.ts';
import type { Role } from '../../../protocol/api/member.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import type { InvitationRecord, TeamRecord, UserRecord } from '../record.ts';
import {
  countInvitations,
  deleteInvitation,
  insertInvitation,
  listInvitations,
  pruneInvitations,
  takeInvitationRow,
  teamOfInvitation,
} from '../store/invitations.ts';
import { lockTeam } from '../store/lock.ts';
import { findTeam } from '../store/team.ts';
import { inTransaction } from '../../database/db.ts';
import type { Accounts } from './provision-team.ts';
import { addMember } from './provision-user.ts';
import { requireStill } from './still-member.ts';

/** How long an invitation is valid, seconds. */
const invitationSeconds = 72 * 3600;
/** Open invitations of one team. */
const invitationsMax = 100;

type Deps = { clock: Clock; db: Db };

/**
 * Makes an invitation into a team, and the path of its link, which is shown only now. `by`: the member who makes it;
 * null for an operator. Throws `rate_limited` where there are too many, `forbidden` where the member is no longer an
 * admin.
 */
export async function createInvitation(
  { clock, db }: Deps,
  team: TeamRecord,
  role: Role,
  note: string,
  by: string | null = null,
): Promise<{ invitation: InvitationRecord; path: string }> {
  const code = randomHex(invitationCodeCharacters / 2);
  const nowUs = clock();
  const invitation: InvitationRecord = {
    invitationId: newUuid(),
    digest: sha256Hex(code),
    teamId: team.teamId,
    role,
    note,
    createdAtUs: nowUs,
    expiresAtUs: nowUs + invitationSeconds * microsPerSecond,
  };
  await inTransaction(db, async db => {
    await lockTeam(db, team.teamId);
    if (by !== null) await requireStill(db, team.teamId, by, 'admin');
    await pruneInvitations(db, nowUs);
    if ((await countInvitations(db, team.teamId)) >= invitationsMax)
      throw new AtollError(
        'rate_limited',
        `The team has ${invitationsMax} invitations, which is the most: remove some that nobody takes`,
      );
    await insertInvitation(db, invitation);
  });
  return { invitation, path: `/dashboard/join#${code}` };
}

/** The valid invitations into a team, the newest first. */
export const invitationsOf = ({ clock, db }: Deps, { teamId }: TeamRecord): Promise<InvitationRecord[]> =>
  listInvitations(db, teamId, clock());

/** Takes an invitation back. Throws `not_found`. */
export async function removeInvitation(db: Db, team: TeamRecord, invitationId: string): Promise<void> {
  if (!(await deleteInvitation(db, team.teamId, invitationId)))
    throw new AtollError('not_found', `There is no invitation ${invitationId} into this team`);
}

/** Throws `unauthenticated` where no invitation has the code; whether it is valid turns out when it is taken. */
export async function requireInvitation(db: Db, code: string): Promise<void> {
  if ((await teamOfInvitation(db, sha256Hex(code))) === null) throw notGood();
}

/** Uses up the invitation with a code. Throws `unauthenticated` where it is not valid. `db` is a transaction. */
export async function takeInvitation({ clock, db }: Deps, code: string): Promise<{ team: TeamRecord; role: Role }> {
  const digest = sha256Hex(code);
  const teamId = await teamOfInvitation(db, digest);
  // Locks the team before the invitation, like the removal of an admin: in another order each would wait for the other.
  if (teamId !== null) await lockTeam(db, teamId);
  const invitation = await takeInvitationRow(db, digest);
  const team = invitation && (await findTeam(db, { teamId: invitation.teamId }));
  if (!team || clock() >= invitation.expiresAtUs) throw notGood();
  return { team, role: invitation.role };
}

const notGood = () =>
  new AtollError('unauthenticated', 'This invitation is not good: each works once and for 72 hours');

/**
 * Makes a user a member with an invitation. Throws `unauthenticated`, and `conflict` for a member; the invitation stays
 * then.
 */
export async function joinTeam(deps: Accounts, user: UserRecord, code: string): Promise<TeamRecord> {
  return inTransaction(deps.db, async db => {
    const { team, role } = await takeInvitation({ ...deps, db }, code);
    await addMember({ ...deps, db }, team, user, role);
    return team;
  });
}
