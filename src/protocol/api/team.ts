import { Type } from '@sinclair/typebox';
import type { Static, TSchema } from '@sinclair/typebox';
import { dateTime, int32, nullable } from './primitives.ts';
import { durability } from './sandbox.ts';

/** The smallest volume: less would be all file system and no content. */
export const volumeMiBMin = 16;
/** The longest name of a key or token. */
export const credentialNameCharactersMax = 128;
const credentialName = Type.String({ minLength: 1, maxLength: credentialNameCharactersMax });

/** A team as its members see it. */
export const Team = Type.Object(
  {
    teamID: Type.String(),
    name: Type.String(),
    apiKey: Type.String({ description: 'A key made for this answer' }),
    isDefault: Type.Boolean(),
  },
  { $id: 'Team' },
);
export type Team = Static<typeof Team>;

/** The parts of a key or token that may be shown. */
const IdentifierMaskingDetails = Type.Object(
  {
    prefix: Type.String(),
    valueLength: int32({ minimum: 0, description: 'Without the prefix' }),
    maskedValuePrefix: Type.String(),
    maskedValueSuffix: Type.String(),
  },
  { $id: 'IdentifierMaskingDetails' },
);

const apiKey = {
  id: Type.String({ format: 'uuid' }),
  name: Type.String(),
  mask: IdentifierMaskingDetails,
  createdAt: dateTime(),
  createdBy: Type.Optional(
    nullable(Type.Object({ id: Type.String({ format: 'uuid' }), email: nullable(Type.String()) })),
  ),
  lastUsed: Type.Optional(nullable(dateTime())),
};

/** An API key of a team, without the key itself. */
export const TeamAPIKey = Type.Object(apiKey, { $id: 'TeamAPIKey' });
export type TeamAPIKey = Static<typeof TeamAPIKey>;

/** An API key right after it was made: the only answer that contains the key. */
export const CreatedTeamAPIKey = Type.Object(
  { ...apiKey, key: Type.String({ description: 'Shown this once' }) },
  { $id: 'CreatedTeamAPIKey' },
);

/** Body of POST /api-keys. */
export const NewTeamAPIKey = Type.Object({ name: credentialName }, { $id: 'NewTeamAPIKey' });
/** Body of PATCH /api-keys/{apiKeyID}. */
export const UpdateTeamAPIKey = Type.Object({ name: credentialName }, { $id: 'UpdateTeamAPIKey' });

/** Body of POST /access-tokens. */
export const NewAccessToken = Type.Object({ name: credentialName }, { $id: 'NewAccessToken' });
/** An access token right after it was made: the only answer that contains the token. */
export const CreatedAccessToken = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    name: Type.String(),
    token: Type.String({ description: 'Shown this once' }),
    mask: IdentifierMaskingDetails,
    createdAt: dateTime(),
  },
  { $id: 'CreatedAccessToken' },
);

const limit = (description: string) => int32({ minimum: 0, description });
const slug = Type.String({
  minLength: 1,
  maxLength: 64,
  description: "Namespace of the team's templates; never changes",
});

const limits = {
  concurrentSandboxes: limit('Sandboxes at once'),
  concurrentBuilds: limit('Template builds at once'),
  sandboxes: limit('Sandboxes, running and paused'),
  templates: limit('Templates, snapshots apart'),
  builds: limit('Builds of templates that are kept; the oldest that failed make room'),
  snapshots: limit('Snapshots that are kept'),
  lifetimeHours: limit('Longest life of one run of a sandbox'),
  cpuCount: limit('CPUs of a sandbox'),
  memoryMiB: limit('Memory of a sandbox'),
  diskMiB: limit('Disk of a sandbox'),
  requestsPerSecond: limit('Requests to the API, 16 KiB of a body counting as one more; 0: no limit'),
  volumes: limit('Volumes; 0: none'),
  volumeMiB: int32({ minimum: volumeMiBMin, description: 'Size of each new volume' }),
};
type Limits = typeof limits;
const membersOf = <T extends TSchema>(wrap: (name: keyof Limits) => T) =>
  Object.fromEntries((Object.keys(limits) as (keyof Limits)[]).map(name => [name, wrap(name)])) as Record<
    keyof Limits,
    T
  >;

/** Limits of a team; absent ones are those of the installation. */
const TeamLimitsInput = Type.Object(
  membersOf(name => Type.Optional(limits[name])),
  { $id: 'TeamLimits' },
);
/** Changes of a team's limits: an absent member stays, null resets it to the installation's. */
const TeamLimitsChange = Type.Object(
  membersOf(name => Type.Optional(nullable(limits[name]))),
  { $id: 'TeamLimitsChange', description: "A member that is absent stays as it is; null: the installation's" },
);

/** A team as operators see it (Atoll's own interface). */
export const AdminTeam = Type.Object(
  {
    teamID: Type.String({ format: 'uuid' }),
    name: Type.String(),
    slug: Type.String(),
    limits: TeamLimitsInput,
    banned: Type.Boolean({ description: 'Nothing is let in' }),
    blocked: Type.Boolean({ description: 'It may read and delete' }),
    pauseDurability: durability('What its pauses outlive where a request does not say'),
    createdAt: dateTime(),
  },
  { $id: 'AdminTeam' },
);
export type AdminTeam = Static<typeof AdminTeam>;

/** Body of the creation of a team, for operators. */
export const NewTeam = Type.Object(
  { name: credentialName, slug, limits: Type.Optional(TeamLimitsInput) },
  { $id: 'NewTeam' },
);
/** Body of a change of a team, for operators. Absent members stay as they are. */
export const TeamChange = Type.Object(
  {
    name: Type.Optional(credentialName),
    limits: Type.Optional(TeamLimitsChange),
    banned: Type.Optional(Type.Boolean()),
    blocked: Type.Optional(Type.Boolean()),
    pauseDurability: Type.Optional(durability('What its pauses outlive where a request does not say')),
  },
  { $id: 'TeamChange' },
);

/** A user as operators see it (Atoll's own interface). */
export const AdminUser = Type.Object(
  {
    userID: Type.String({ format: 'uuid' }),
    name: Type.String(),
    email: nullable(Type.String()),
    operator: Type.Boolean({ description: 'May do what the operator may, when signed in' }),
    createdAt: dateTime(),
  },
  { $id: 'AdminUser' },
);
export type AdminUser = Static<typeof AdminUser>;

/** Body of the creation of a user, for operators. */
export const NewUser = Type.Object(
  { name: credentialName, email: Type.Optional(Type.String({ maxLength: 254 })) },
  { $id: 'NewUser' },
);

/** Body of a change of a user, for operators. */
export const UserChange = Type.Object({ operator: Type.Boolean() }, { $id: 'UserChange' });

/** What a team may use, and how much of it is in use now. */
export const TeamUse = Type.Object(
  {
    limits: Type.Object(limits),
    taken: Type.Object({
      concurrentSandboxes: int32({ minimum: 0 }),
      concurrentBuilds: int32({ minimum: 0 }),
      sandboxes: int32({ minimum: 0 }),
      templates: int32({ minimum: 0 }),
      builds: int32({ minimum: 0 }),
      snapshots: int32({ minimum: 0 }),
      volumes: int32({ minimum: 0 }),
    }),
  },
  { $id: 'TeamUse' },
);
export type TeamUse = Static<typeof TeamUse>;
