import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime, int32, nullable } from './primitives.ts';

export const credentialNameCharactersMax = 128;
const credentialName = Type.String({ minLength: 1, maxLength: credentialNameCharactersMax });

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

export const IdentifierMaskingDetails = Type.Object(
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
  createdBy: Type.Optional(nullable(Type.Object({ id: Type.String({ format: 'uuid' }), email: nullable(Type.String()) }))),
  lastUsed: Type.Optional(nullable(dateTime())),
};

export const TeamAPIKey = Type.Object(apiKey, { $id: 'TeamAPIKey' });
export type TeamAPIKey = Static<typeof TeamAPIKey>;

export const CreatedTeamAPIKey = Type.Object(
  { ...apiKey, key: Type.String({ description: 'Shown this once' }) },
  { $id: 'CreatedTeamAPIKey' },
);

export const NewTeamAPIKey = Type.Object({ name: credentialName }, { $id: 'NewTeamAPIKey' });
export const UpdateTeamAPIKey = Type.Object({ name: credentialName }, { $id: 'UpdateTeamAPIKey' });

export const NewAccessToken = Type.Object({ name: credentialName }, { $id: 'NewAccessToken' });
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
