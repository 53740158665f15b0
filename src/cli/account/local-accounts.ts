/** An API key or access token in the form that may be shown after its creation. */
export type CredentialSummary = { id: string; name: string; masked: string; createdAt: Date; lastUsedAt: Date | null };

/**
 * Teams, users and credentials, for commands of root on this machine. If no team is named, the installation's first is
 * meant.
 */
type LocalAccounts = {
  /** Makes a key and answers it. It is stored nowhere in this form. */
  createKey(teamSlug: string | undefined, name: string): Promise<{ id: string; text: string }>;
  listKeys(teamSlug: string | undefined): Promise<CredentialSummary[]>;
  /** These fail with `not_found` for an unknown key. */
  renameKey(teamSlug: string | undefined, keyId: string, name: string): Promise<void>;
  revokeKey(teamSlug: string | undefined, keyId: string): Promise<void>;
  /** Answers the ID. Fails with `invalid` or `conflict`. */
  createTeam(team: { name: string; slug: string }): Promise<string>;
  listTeams(): Promise<{ teamId: string; slug: string; name: string; banned: boolean; blocked: boolean }[]>;
  renameTeam(slug: string, name: string): Promise<void>;
  /** Answers the ID. Fails with `invalid` or `conflict`. */
  createUser(user: { name: string; email: string | null }): Promise<string>;
  listUsers(): Promise<{ userId: string; name: string; email: string | null }[]>;
  join(userId: string, teamSlug: string): Promise<void>;
  leave(userId: string, teamSlug: string): Promise<void>;
  /** Makes an access token and answers it. It is stored nowhere in this form. */
  createToken(userId: string, name: string): Promise<{ id: string; text: string }>;
  listTokens(userId: string): Promise<CredentialSummary[]>;
  revokeToken(userId: string, tokenId: string): Promise<void>;
};

/** Opens the accounts for the duration of one command. */
export type WithAccounts = <T>(use: (accounts: LocalAccounts) => Promise<T>) => Promise<T>;
