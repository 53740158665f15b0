import { Type } from '@sinclair/typebox';
import { AdminUser, CreatedAccessToken, NewAccessToken, NewUser, UserChange } from '../../../protocol/api/team.ts';
import { createAccessToken } from '../../credential/rules/access-tokens.ts';
import { teamForAdmin } from '../workflows/team-actions.ts';
import { changeOperator, listAllUsers, removeMember, userForAdmin } from '../rules/users.ts';
import { formatTime } from '../../../base/time.ts';
import { addMember, createUser } from '../../team/rules/provision-user.ts';
import { accessTokenView } from '../../credential/http/view.ts';
import { route } from '../../http/route.ts';
import type { UserRecord } from '../../team/record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Accounts } from '../../team/rules/provision-team.ts';
import type { Db } from '../../database/db.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';

const memberParams = Type.Object({ teamID: Type.String(), userID: Type.String() });

/** `GET /admin/users` */
export const listUsersAsAdmin = route({
  operationId: 'adminListUsers',
  method: 'GET',
  path: '/admin/users',
  summary: 'List all users',
  auth: 'admin',
  responses: { 200: { description: 'The users', schema: Type.Array(AdminUser) } },
  async handle({ db }: { db: Db }) {
    return { status: 200, body: (await listAllUsers(db)).map(userView) };
  },
});

/** `POST /admin/users` */
export const createUserAsAdmin = route({
  operationId: 'adminCreateUser',
  method: 'POST',
  path: '/admin/users',
  summary: 'Create a user',
  auth: 'admin',
  body: NewUser,
  responses: { 201: { description: 'The user', schema: AdminUser } },
  errors: [409],
  async handle(deps: { clock: Clock; db: Db }, { body, audit }) {
    const user = await createUser(deps, { name: body.name, email: body.email ?? null });
    audit({ target: `user:${user.userId}`, after: { name: user.name, email: user.email } });
    return { status: 201, body: userView(user) };
  },
});

/** `PATCH /admin/users/{userID}` */
export const updateUserAsAdmin = route({
  operationId: 'adminUpdateUser',
  method: 'PATCH',
  path: '/admin/users/{userID}',
  summary: 'Make a user an operator, or none any more; it counts from the next request on',
  auth: 'admin',
  proof: true,
  params: Type.Object({ userID: Type.String() }),
  body: UserChange,
  responses: { 204: { description: 'Done' } },
  errors: [404],
  async handle(deps: { credentials: CredentialCache; db: Db }, { params, body, audit }) {
    const { userId, isOperator } = await changeOperator(deps, params.userID, body.operator);
    audit({ target: `user:${userId}`, before: { operator: isOperator }, after: { operator: body.operator } });
    return { status: 204 };
  },
});

/** `POST /admin/users/{userID}/access-tokens` */
export const createTokenAsAdmin = route({
  operationId: 'adminCreateAccessToken',
  method: 'POST',
  path: '/admin/users/{userID}/access-tokens',
  summary: 'Create an access token for a user',
  auth: 'admin',
  proof: true,
  noStore: true,
  params: Type.Object({ userID: Type.String() }),
  body: NewAccessToken,
  responses: { 201: { description: 'The token, shown this once', schema: CreatedAccessToken } },
  errors: [404],
  async handle(deps: { clock: Clock; db: Db }, { params, body, audit }) {
    const { token, text } = await createAccessToken(deps, await userForAdmin(deps.db, params.userID), body.name);
    audit({ target: `accessToken:${token.tokenId}`, after: { name: token.name, userId: token.userId } });
    return { status: 201, body: { ...accessTokenView(token), token: text } };
  },
});

/** `PUT /admin/teams/{teamID}/members/{userID}` */
export const addMemberAsAdmin = route({
  operationId: 'adminAddMember',
  method: 'PUT',
  path: '/admin/teams/{teamID}/members/{userID}',
  summary: 'Add a user to a team',
  auth: 'admin',
  proof: true,
  params: memberParams,
  responses: { 204: { description: 'He is one' } },
  errors: [404, 409],
  async handle(deps: Accounts, { params, audit }) {
    const [team, user] = [await teamForAdmin(deps.db, params.teamID), await userForAdmin(deps.db, params.userID)];
    await addMember(deps, team, user);
    audit({ target: `team:${team.teamId}`, after: { member: user.userId } });
    return { status: 204 };
  },
});

/** `DELETE /admin/teams/{teamID}/members/{userID}` */
export const removeMemberAsAdmin = route({
  operationId: 'adminRemoveMember',
  method: 'DELETE',
  path: '/admin/teams/{teamID}/members/{userID}',
  summary: 'Remove a user from a team',
  auth: 'admin',
  proof: true,
  params: memberParams,
  responses: { 204: { description: 'He is none any more' } },
  errors: [404],
  async handle(deps: { credentials: CredentialCache; db: Db }, { params, audit }) {
    const [team, user] = [await teamForAdmin(deps.db, params.teamID), await userForAdmin(deps.db, params.userID)];
    await removeMember(deps, team, user);
    audit({ target: `team:${team.teamId}`, before: { member: user.userId } });
    return { status: 204 };
  },
});

function userView({ userId, name, email, createdAtUs, isOperator }: UserRecord): AdminUser {
  return { userID: userId, name, email, operator: isOperator, createdAt: formatTime(createdAtUs) };
}
