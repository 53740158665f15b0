import { type RecordOf, changing, column } from '../record/column.ts';

/** What is stored of a credential after it was shown: its digest, and what its mask shows. */
const credentialColumns = {
  name: changing(column('name').plain<string>()),
  /** SHA-256 of the decoded random part, hex. */
  digest: column('digest').plain<string>(),
  valueLength: column('value_length').plain<number>(),
  maskPrefix: column('mask_prefix').plain<string>(),
  maskSuffix: column('mask_suffix').plain<string>(),
  createdAtUs: column('created_at_us').plain<number>(),
  lastUsedAtUs: changing(column('last_used_at_us').plain<number | null>()),
} as const;

/** The members of an API key, and their columns. */
export const apiKeyColumns = {
  keyId: column('key_id').plain<string>(),
  teamId: column('team_id').plain<string>(),
  /** The user who made it, if a user did. */
  createdBy: column('created_by').plain<string | null>(),
  ...credentialColumns,
} as const;

/**
 * The name of the keys that `GET /teams` makes; each member has few of them, and nobody else may use the name. Such a
 * key may do what the member who made it may do.
 */
export const listedKeyName = 'made by listing teams';

/** The members of an access token, and their columns. */
export const accessTokenColumns = {
  tokenId: column('token_id').plain<string>(),
  userId: column('user_id').plain<string>(),
  ...credentialColumns,
} as const;

/** A credential, whatever it is for. */
export type CredentialRecord = RecordOf<typeof credentialColumns>;

/** An API key of a team. */
export type ApiKeyRecord = RecordOf<typeof apiKeyColumns>;

/** An access token of a user. */
export type AccessTokenRecord = RecordOf<typeof accessTokenColumns>;
