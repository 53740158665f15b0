import { Type } from '@sinclair/typebox';
import { formatTime } from '../../../base/time.ts';
import { Member, MemberChange } from '../../../protocol/api/member.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';
import type { Db } from '../../database/db.ts';
import { route } from '../../http/route.ts';
import { changeRole, membersOf, removeFromTeam } from '../rules/members.ts';

const params = Type.Object({ userID: Type.String() });

/** `GET /members` */
export const listMembersRoute = route({
  operationId: 'listMembers',
  method: 'GET',
  path: '/members',
  summary: 'List the members of the team, the oldest first',
  auth: 'memberOrAdmin',
  long: true,
  responses: { 200: { description: 'The members', schema: Type.Array(Member) } },
  async handle({ db }: { db: Db }, { caller }) {
    const members = await membersOf(db, caller.team);
    return {
      status: 200,
      body: members.map(({ user, role, sinceUs }) => ({
        userID: user.userId,
        name: user.name,
        email: user.email,
        role,
        since: formatTime(sinceUs),
      })),
    };
  },
});

/** `PATCH /members/{userID}` */
export const changeMemberRoute = route({
  operationId: 'updateMember',
  method: 'PATCH',
  path: '/members/{userID}',
  summary: 'Give a member of the team a role; it counts from the next request on',
  auth: 'memberOrAdmin',
  role: 'admin',
  proof: true,
  params,
  body: MemberChange,
  strict: true,
  responses: { 204: { description: 'Done' } },
  errors: [404, 409],
  async handle(deps: { credentials: CredentialCache; db: Db }, { caller, params, body, audit }) {
    audit({ target: `user:${params.userID}`, after: { role: body.role } });
    const { role } = await changeRole(deps, caller.team, params.userID, body.role);
    audit({ before: { role } });
    return { status: 204 };
  },
});

/** `DELETE /members/{userID}` */
export const removeMemberRoute = route({
  operationId: 'deleteMember',
  method: 'DELETE',
  path: '/members/{userID}',
  summary: 'Remove a member from the team, from the next request on',
  auth: 'memberOrAdmin',
  role: 'admin',
  proof: true,
  params,
  responses: { 204: { description: 'Removed' } },
  errors: [404, 409],
  async handle(deps: { credentials: CredentialCache; db: Db }, { caller, params, audit }) {
    audit({ target: `user:${params.userID}` });
    const { role } = await removeFromTeam(deps, caller.team, params.userID);
    audit({ before: { role } });
    return { status: 204 };
  },
});
