import type { Membership, UserRecord } from '../team/record.ts';

/** A session of a browser. */
export type SessionRecord = {
  sessionId: string;
  digest: string;
  /** Null: the operator without account. */
  userId: string | null;
  isOperator: boolean;
  createdAtUs: number;
  lastUsedAtUs: number;
  /** When it last proved whose it is. */
  provenAtUs: number;
  address: string;
  userAgent: string;
};

/** A session with its user. */
export type KnownSession = { session: SessionRecord; user: UserRecord | null; memberships: Membership[] };

/** A link that signs in once. */
export type SignInLinkRecord = { digest: string; userId: string | null; isOperator: boolean; expiresAtUs: number };
