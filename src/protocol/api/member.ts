import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime, nullable, oneOf } from './primitives.ts';

/** Roles in a team, from least to most: each may do all that those before it may. */
export const roles = ['viewer', 'developer', 'admin'] as const;

/** What a member may do in a team. */
export const Role = oneOf(roles);
export type Role = Static<typeof Role>;

/** The longest note on an invitation. */
const noteCharactersMax = 200;
/** The hexadecimal characters of an invitation's code. */
export const invitationCodeCharacters = 64;

/** A member of a team. */
export const Member = Type.Object(
  {
    userID: Type.String({ format: 'uuid' }),
    name: Type.String(),
    email: nullable(Type.String()),
    role: Role,
    since: dateTime(),
  },
  { $id: 'Member' },
);

/** Body of a change of a member. */
export const MemberChange = Type.Object({ role: Role }, { $id: 'MemberChange' });

/** An invitation that nobody has taken yet. */
export const Invitation = Type.Object(
  {
    invitationID: Type.String({ format: 'uuid' }),
    role: Role,
    note: Type.String({ description: 'For whom it is, in the words of who made it' }),
    createdAt: dateTime(),
    expiresAt: dateTime(),
  },
  { $id: 'Invitation' },
);

/** Body of a new invitation. */
export const NewInvitation = Type.Object(
  { role: Role, note: Type.Optional(Type.String({ maxLength: noteCharactersMax })) },
  { $id: 'NewInvitation' },
);

/** An invitation right after it was made: the only answer that contains its code. */
export const CreatedInvitation = Type.Object(
  {
    invitationID: Type.String({ format: 'uuid' }),
    path: Type.String({ description: 'Behind the origin of the platform; shown this once' }),
    expiresAt: dateTime(),
  },
  { $id: 'CreatedInvitation' },
);

/** Body of the request to join a team as the signed-in user. */
export const JoinTeam = Type.Object(
  { invitation: Type.String({ maxLength: invitationCodeCharacters }) },
  { $id: 'JoinTeam' },
);
