import type { Selectable } from 'kysely';
import type { Db } from '../../database/db.ts';
import type { Tables } from '../../database/schema.ts';
import type { InvitationRecord } from '../record.ts';

/** Writes a new invitation. */
export async function insertInvitation(db: Db, invitation: InvitationRecord): Promise<void> {
  await db
    .insertInto('invitations')
    .values({
      invitation_id: invitation.invitationId,
      digest: invitation.digest,
      team_id: invitation.teamId,
      role: invitation.role,
      note: invitation.note,
      created_at_us: invitation.createdAtUs,
      expires_at_us: invitation.expiresAtUs,
    })
    .execute();
}

/** The invitations into a team that expire after `nowUs`, the newest first. */
export async function listInvitations(db: Db, teamId: string, nowUs: number): Promise<InvitationRecord[]> {
  const rows = await db
    .selectFrom('invitations')
    .selectAll()
    .where('team_id', '=', teamId)
    .where('expires_at_us', '>', nowUs)
    .orderBy('created_at_us', 'desc')
    .orderBy('invitation_id')
    .execute();
  return rows.map(invitationOfRow);
}

/** How many invitations into a team there are. */
export async function countInvitations(db: Db, teamId: string): Promise<number> {
  const { count } = await db
    .selectFrom('invitations')
    .select(({ fn }) => fn.countAll<number | string>().as('count'))
    .where('team_id', '=', teamId)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** The ID of the team of the invitation with this digest; null where there is none. */
export async function teamOfInvitation(db: Db, digest: string): Promise<string | null> {
  const row = await db.selectFrom('invitations').select('team_id').where('digest', '=', digest).executeTakeFirst();
  return row?.team_id ?? null;
}

/** Removes the invitation with this digest and answers it, expired or not: of two concurrent requests, one gets it. */
export async function takeInvitationRow(db: Db, digest: string): Promise<InvitationRecord | null> {
  const row = await db.deleteFrom('invitations').where('digest', '=', digest).returningAll().executeTakeFirst();
  return row ? invitationOfRow(row) : null;
}

/** Withdraws an invitation. False where the team has none with this ID. */
export async function deleteInvitation(db: Db, teamId: string, invitationId: string): Promise<boolean> {
  const result = await db
    .deleteFrom('invitations')
    .where('team_id', '=', teamId)
    .where('invitation_id', '=', invitationId)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Withdraws all invitations into a team. */
export async function deleteInvitations(db: Db, teamId: string): Promise<void> {
  await db.deleteFrom('invitations').where('team_id', '=', teamId).execute();
}

/** Forgets invitations that expired before `beforeUs`. */
export async function pruneInvitations(db: Db, beforeUs: number): Promise<void> {
  await db.deleteFrom('invitations').where('expires_at_us', '<', beforeUs).execute();
}

function invitationOfRow(row: Selectable<Tables['invitations']>): InvitationRecord {
  return {
    invitationId: row.invitation_id,
    digest: row.digest,
    teamId: row.team_id,
    role: row.role,
    note: row.note,
    createdAtUs: row.created_at_us,
    expiresAtUs: row.expires_at_us,
  };
}
