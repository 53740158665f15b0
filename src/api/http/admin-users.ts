import { Type } from '@sinclair/typebox';
import { AdminUser, CreatedAccessToken, NewAccessToken, NewUser } from '../../protocol/api/team.ts';
import { createAccessToken } from '../app/access-tokens.ts';
import { teamForAdmin } from '../app/admin.ts';
import { listAllUsers, removeMember, userForAdmin } from '../app/admin-users.ts';
import { formatTime } from '../../base/time.ts';
import { addMember, createUser } from '../app/provision-user.ts';
import type { UserRecord } from '../store/user.ts';
import { accessTokenView } from './credential-view.ts';
import { route } from './route.ts';

const memberParams = Type.Object({ teamID: Type.String(), userID: Type.String() });

export const listUsersAsAdmin = route({
  operationId: 'adminListUsers',
  method: 'GET',
  path: '/admin/users',
  summary: 'Every user',
  auth: 'admin',
  responses: { 200: { description: 'The users', schema: Type.Array(AdminUser) } },
  async handle(app) {
    return { status: 200, body: (await listAllUsers(app)).map(userView) };
  },
});

export const createUserAsAdmin = route({
  operationId: 'adminCreateUser',
  method: 'POST',
  path: '/admin/users',
  summary: 'A new user',
  auth: 'admin',
  body: NewUser,
  responses: { 201: { description: 'The user', schema: AdminUser } },
  errors: [409],
  async handle(app, { body, note }) {
    const user = await createUser(app, { name: body.name, email: body.email ?? null });
    note({ target: `user:${user.userId}`, after: { name: user.name, email: user.email } });
    return { status: 201, body: userView(user) };
  },
});

export const createTokenAsAdmin = route({
  operationId: 'adminCreateAccessToken',
  method: 'POST',
  path: '/admin/users/{userID}/access-tokens',
  summary: 'A new access token of a user: the first one he gets this way',
  auth: 'admin',
  noStore: true,
  params: Type.Object({ userID: Type.String() }),
  body: NewAccessToken,
  responses: { 201: { description: 'The token, shown this once', schema: CreatedAccessToken } },
  errors: [404],
  async handle(app, { params, body, note }) {
    const { token, text } = await createAccessToken(app, await userForAdmin(app, params.userID), body.name);
    note({ target: `accessToken:${token.tokenId}`, after: { name: token.name, userId: token.userId } });
    return { status: 201, body: { ...accessTokenView(token), token: text } };
  },
});

export const addMemberAsAdmin = route({
  operationId: 'adminAddMember',
  method: 'PUT',
  path: '/admin/teams/{teamID}/members/{userID}',
  summary: 'Make a user a member of a team',
  auth: 'admin',
  params: memberParams,
  responses: { 204: { description: 'He is one' } },
  errors: [400, 404, 409],
  async handle(app, { params, note }) {
    const [team, user] = [await teamForAdmin(app, params.teamID), await userForAdmin(app, params.userID)];
    await addMember(app, team, user);
    note({ target: `team:${team.teamId}`, after: { member: user.userId } });
    return { status: 204 };
  },
});

export const removeMemberAsAdmin = route({
  operationId: 'adminRemoveMember',
  method: 'DELETE',
  path: '/admin/teams/{teamID}/members/{userID}',
  summary: 'End the membership of a user in a team',
  auth: 'admin',
  params: memberParams,
  responses: { 204: { description: 'He is none any more' } },
  errors: [400, 404],
  async handle(app, { params, note }) {
    const [team, user] = [await teamForAdmin(app, params.teamID), await userForAdmin(app, params.userID)];
    await removeMember(app, team, user);
    note({ target: `team:${team.teamId}`, before: { member: user.userId } });
    return { status: 204 };
  },
});

function userView({ userId, name, email, createdAtUs }: UserRecord): AdminUser {
  return { userID: userId, name, email, createdAt: formatTime(createdAtUs) };
}
