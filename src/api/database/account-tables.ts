import type { Role } from '../../protocol/api/member.ts';
import type { accessTokenColumns, apiKeyColumns } from '../credential/record.ts';
import type { Durability } from '../../protocol/durability.ts';
import type { Fixed, Flag, TableOf } from './column-types.ts';

/** The tables of teams, their people, and what both sign in with. */
export type AccountTables = {
  teams: TeamTable;
  users: UserTable;
  team_members: TeamMemberTable;
  api_keys: TableOf<typeof apiKeyColumns>;
  access_tokens: TableOf<typeof accessTokenColumns>;
  sessions: SessionTable;
  sign_in_links: SignInLinkTable;
  invitations: InvitationTable;
  user_identities: UserIdentityTable;
};

/** Teams. */
export type TeamTable = {
  team_id: Fixed<string>;
  name: string;
  /** The namespace of the team's template names. */
  slug: string;
  /** What differs from the installation's limits. */
  limits_json: string;
  banned: Flag;
  blocked: Flag;
  /** What its pauses outlive where nothing is said. */
  pause_durability: Durability;
  created_at_us: Fixed<number>;
};

/** Users. */
export type UserTable = {
  user_id: Fixed<string>;
  email: string | null;
  name: string;
  created_at_us: Fixed<number>;
  is_operator: Flag;
  /** Hash by argon2id, with its parameters (PHC string). Null: the user has none. */
  password_hash: string | null;
};

/** Who users are at identity providers (OpenID Connect Core 1.0, section 5.7). */
type UserIdentityTable = {
  issuer: Fixed<string>;
  subject: Fixed<string>;
  user_id: Fixed<string>;
  created_at_us: Fixed<number>;
};

/** Which users are in which teams. */
type TeamMemberTable = {
  team_id: Fixed<string>;
  user_id: Fixed<string>;
  is_default: Flag;
  role: Role;
  created_at_us: Fixed<number>;
};

/** Invitations into teams that nobody has taken yet. */
type InvitationTable = {
  invitation_id: Fixed<string>;
  digest: Fixed<string>;
  team_id: Fixed<string>;
  role: Fixed<Role>;
  note: Fixed<string>;
  created_at_us: Fixed<number>;
  expires_at_us: Fixed<number>;
};

/** Who is signed in at the dashboard. Without a user, the operator. */
export type SessionTable = {
  session_id: Fixed<string>;
  user_id: Fixed<string | null>;
  digest: Fixed<string>;
  is_operator: Fixed<Flag>;
  created_at_us: Fixed<number>;
  last_used_at_us: number;
  /** When it last proved whose it is. */
  proven_at_us: number;
  address: Fixed<string>;
  user_agent: Fixed<string>;
};

/** Each signs in once. */
type SignInLinkTable = {
  digest: Fixed<string>;
  user_id: Fixed<string | null>;
  is_operator: Fixed<Flag>;
  expires_at_us: Fixed<number>;
};
