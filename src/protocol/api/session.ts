import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { invitationCodeCharacters, Role } from './member.ts';
import { dateTime, nullable } from './primitives.ts';

/** Hexadecimal digits of a sign-in link's code. */
export const signInCodeCharacters = 64;
/** Longer texts can't be access tokens. */
const accessTokenCharactersMax = 200;

/** The shortest password, and the only rule for it. */
export const passwordCharactersMin = 12;
const passwordCharactersMax = 200;
const emailCharactersMax = 254;
const nameCharactersMax = 128;

const code = Type.String({ maxLength: signInCodeCharacters, description: 'Of a sign-in link' });
const accessToken = Type.String({ maxLength: accessTokenCharactersMax, description: 'Of a user' });
const email = Type.String({ maxLength: emailCharactersMax });
const name = Type.String({ minLength: 1, maxLength: nameCharactersMax });
const password = Type.String({ maxLength: passwordCharactersMax });
const newPassword = Type.String({ minLength: passwordCharactersMin, maxLength: passwordCharactersMax });

/** Characters of the secret that a page keeps while somebody signs in at the identity provider. */
const pageSecretCharactersMax = 128;
/** Providers' codes may be long, and `state` is ours. */
const providerQueryCharactersMax = 8192;

/** What the identity provider sends a browser back with. */
const AtProvider = Type.Object(
  {
    query: Type.String({ maxLength: providerQueryCharactersMax, description: 'Of the URL, without "?"' }),
    secret: Type.String({ maxLength: pageSecretCharactersMax, description: 'Whose digest began it' }),
  },
  { additionalProperties: false },
);

/**
 * How to sign in: by the code of a link, an access token, an e-mail address with a password, or at the identity
 * provider. One of these is needed.
 */
export const SignIn = Type.Object(
  {
    code: Type.Optional(code),
    accessToken: Type.Optional(accessToken),
    email: Type.Optional(email),
    password: Type.Optional(password),
    provider: Type.Optional(AtProvider),
  },
  { $id: 'SignIn' },
);
export type SignIn = Static<typeof SignIn>;

/** The identity provider at which people can sign in. */
export const SignInProvider = Type.Object({ name: nullable(Type.String()) }, { $id: 'SignInProvider' });
export type SignInProvider = Static<typeof SignInProvider>;

/** Body of the request to sign in at the identity provider. */
export const ProviderSignIn = Type.Object(
  { binding: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256, hex, of a secret that the page keeps' }) },
  { $id: 'ProviderSignIn' },
);

/** Where the browser goes to sign in. */
export const ProviderUrl = Type.Object({ url: Type.String() }, { $id: 'ProviderUrl' });
export type ProviderUrl = Static<typeof ProviderUrl>;

/** How a session proves again whose it is. One of the members is needed. */
export const SessionProof = Type.Object(
  { code: Type.Optional(code), accessToken: Type.Optional(accessToken), password: Type.Optional(password) },
  { $id: 'SessionProof' },
);
export type SessionProof = Static<typeof SessionProof>;

/** Body of a new account for the operator who signed in by a link. */
export const NewAccount = Type.Object({ name, email, password: newPassword }, { $id: 'NewAccount' });

/** Body of a new account made with an invitation. */
export const InvitedAccount = Type.Object(
  { invitation: Type.String({ maxLength: invitationCodeCharacters }), name, email, password: newPassword },
  { $id: 'InvitedAccount' },
);

/** Body of a change of one's password. */
export const NewPassword = Type.Object({ password: newPassword }, { $id: 'NewPassword' });

/** A team that the signed-in person can act for. */
const SessionTeam = Type.Object(
  { teamID: Type.String(), name: Type.String(), slug: Type.String(), role: Role },
  { $id: 'SessionTeam' },
);

/** The person who is signed in, and their rights. */
export const Session = Type.Object(
  {
    sessionID: Type.String(),
    user: nullable(
      Type.Object({
        id: Type.String(),
        name: Type.String(),
        email: nullable(Type.String()),
        hasPassword: Type.Boolean(),
      }),
    ),
    operator: Type.Boolean({ description: 'May do what the operator may' }),
    teams: Type.Array(SessionTeam, { description: 'An operator acts for any team' }),
    expiresAt: dateTime('However much it is used'),
  },
  { $id: 'Session' },
);
export type Session = Static<typeof Session>;

/** A session in the list of the user's own sessions. */
export const ListedSession = Type.Object(
  {
    sessionID: Type.String(),
    current: Type.Boolean({ description: 'The one that asks' }),
    createdAt: dateTime(),
    lastUsedAt: dateTime(),
    address: Type.String(),
    userAgent: Type.String(),
  },
  { $id: 'ListedSession' },
);

/** Body of the request for a link that signs a user in. */
export const NewSignInLink = Type.Object(
  { userID: Type.Optional(Type.String({ description: 'Whom it signs in; default: the operator' })) },
  { $id: 'NewSignInLink' },
);

/** A link that signs a user in, once. */
export const SignInLink = Type.Object(
  { path: Type.String({ description: 'Behind the origin of the platform' }), expiresAt: dateTime() },
  { $id: 'SignInLink' },
);
