import type { Role } from '../../protocol/api/member.ts';
import type { accessTokenColumns, apiKeyColumns } from '../credential/record.ts';
import type { Durability } from '../../protocol/durability.ts';
import type { Fixed, Flag, TableOf } from './column-types.ts';

/** The tables of teams, their people, and the credentials of both. */
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
  /** Only limits that differ from the installation's. */
  limits_json: string;
  banned: Flag;
  blocked: Flag;
  /** What its pauses survive by default. */
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
  /** Argon2id hash with its parameters (PHC string). Null: the user has no password. */
  password_hash: string | null;
};

/** The users' identities at identity providers (OpenID Connect Core 1.0, section 5.7). */
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

/** Invitations into teams that nobody has accepted yet. */
type InvitationTable = {
  invitation_id: Fixed<string>;
  digest: Fixed<string>;
  team_id: Fixed<string>;
  role: Fixed<Role>;
  note: Fixed<string>;
  created_at_us: Fixed<number>;
  expires_at_us: Fixed<number>;
};

/** Sessions at the dashboard. A session without a user is the operator's. */
export type SessionTable = {
  session_id: Fixed<string>;
  user_id: Fixed<string | null>;
  digest: Fixed<string>;
  is_operator: Fixed<Flag>;
  created_at_us: Fixed<number>;
  last_used_at_us: number;
  /** When the session last proved whose it is. */
  proven_at_us: number;
  address: Fixed<string>;
  user_agent: Fixed<string>;
};

/** Sign-in links, each good for one use. */
type SignInLinkTable = {
  digest: Fixed<string>;
  user_id: Fixed<string | null>;
  is_operator: Fixed<Flag>;
  expires_at_us: Fixed<number>;
};
