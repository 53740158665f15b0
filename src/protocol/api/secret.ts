import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime, int64, stringMap } from './primitives.ts';

/** Bounds of a team's secrets. */
export const secretBounds = {
  nameCharactersMax: 128,
  valueBytesMax: 65_536,
  metadataEntriesMax: 32,
  metadataKeyBytesMax: 128,
  metadataValueBytesMax: 1024,
  metadataBytesMax: 8192,
  /** Secrets of one team. */
  secretsMax: 1000,
} as const;

const value = Type.String({ minLength: 1, description: 'Never returned' });
const metadata = Type.Optional(stringMap());

/** A secret without its value, which is never returned. */
export const Secret = Type.Object(
  {
    secretID: Type.String(),
    name: Type.String(),
    currentVersion: int64({ minimum: 1 }),
    metadata: stringMap(),
    createdAt: dateTime(),
    updatedAt: dateTime(),
  },
  { $id: 'Secret' },
);
export type Secret = Static<typeof Secret>;

/** Body of POST /secrets. */
export const NewSecret = Type.Object(
  {
    name: Type.String({ description: '1 to 128 of letters, digits, "-" and "_"; lower-cased; not sec_…' }),
    value,
    metadata,
  },
  { $id: 'NewSecret' },
);
/** Body of a change of a secret: makes a new version, which sandboxes get from then on. */
export const NewSecretVersion = Type.Object({ value, metadata }, { $id: 'NewSecretVersion' });
