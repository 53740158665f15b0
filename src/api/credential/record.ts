/** What is known of a credential once it was shown: its digest and its mask. */
export type CredentialRecord = {
  name: string;
  digest: string;
  valueLength: number;
  maskPrefix: string;
  maskSuffix: string;
  createdAtUs: number;
  lastUsedAtUs: number | null;
};

/** An API key of a team. `createdBy`: the user who made it, where it was one. */
export type ApiKeyRecord = CredentialRecord & { keyId: string; teamId: string; createdBy: string | null };

/** An access token of a user. */
export type AccessTokenRecord = CredentialRecord & { tokenId: string; userId: string };
