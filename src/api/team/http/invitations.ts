import { Type } from '@sinclair/typebox';
import { formatTime } from '../../../base/time.ts';
import { CreatedInvitation, Invitation, NewInvitation } from '../../../protocol/api/member.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import { route } from '../../http/route.ts';
import { createInvitation, invitationsOf, removeInvitation } from '../rules/invitations.ts';

/** `GET /invitations` */
export const listInvitationsRoute = route({
  operationId: 'listInvitations',
  method: 'GET',
  path: '/invitations',
  summary: 'List the invitations into the team that nobody has taken, newest first',
  auth: 'memberOrAdmin',
  long: true,
  role: 'admin',
  responses: { 200: { description: 'The invitations', schema: Type.Array(Invitation) } },
  async handle(deps: { clock: Clock; db: Db }, { caller }) {
    const invitations = await invitationsOf(deps, caller.team);
    return {
      status: 200,
      body: invitations.map(({ invitationId, role, note, createdAtUs, expiresAtUs }) => ({
        invitationID: invitationId,
        role,
        note,
        createdAt: formatTime(createdAtUs),
        expiresAt: formatTime(expiresAtUs),
      })),
    };
  },
});

/** `POST /invitations` */
export const createInvitationRoute = route({
  operationId: 'createInvitation',
  method: 'POST',
  path: '/invitations',
  summary: 'Create a link by which somebody joins the team, once and within 72 hours',
  auth: 'memberOrAdmin',
  role: 'admin',
  proof: true,
  noStore: true,
  body: NewInvitation,
  strict: true,
  responses: { 201: { description: 'The link, shown this once', schema: CreatedInvitation } },
  async handle(deps: { clock: Clock; db: Db }, { caller, body, audit }) {
    const { invitation, path } = await createInvitation(deps, caller.team, body.role, body.note ?? '', caller.actor.id);
    audit({ target: `invitation:${invitation.invitationId}`, after: { role: body.role } });
    return {
      status: 201,
      body: { invitationID: invitation.invitationId, path, expiresAt: formatTime(invitation.expiresAtUs) },
    };
  },
});

/** `DELETE /invitations/{invitationID}` */
export const deleteInvitationRoute = route({
  operationId: 'deleteInvitation',
  method: 'DELETE',
  path: '/invitations/{invitationID}',
  summary: 'Take an invitation back',
  auth: 'memberOrAdmin',
  role: 'admin',
  params: Type.Object({ invitationID: Type.String() }),
  responses: { 204: { description: 'It is good no more' } },
  errors: [404],
  async handle({ db }: { db: Db }, { caller, params, audit }) {
    audit({ target: `invitation:${params.invitationID}` });
    await removeInvitation(db, caller.team, params.invitationID);
    return { status: 204 };
  },
});
