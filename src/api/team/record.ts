import type { Role } from '../../protocol/api/member.ts';
import type { Durability } from '../../protocol/durability.ts';

/** Limits of a team. A limit that the team's row does not set is the installation's. */
export type TeamLimits = {
  concurrentSandboxes: number;
  concurrentBuilds: number;
  /** Running and paused ones. */
  sandboxes: number;
  /** Not counting snapshots. */
  templates: number;
  /** Builds of all templates, in any state; snapshots count separately. */
  builds: number;
  snapshots: number;
  /** Longest life of one run of a sandbox, hours. */
  lifetimeHours: number;
  /** Per sandbox. */
  cpuCount: number;
  memoryMiB: number;
  diskMiB: number;
  /** Requests per second to the API on average; 0: no limit. */
  requestsPerSecond: number;
  /** 0: none, the feature is off. */
  volumes: number;
  /** Size of each new volume. */
  volumeMiB: number;
};

/** A team, which owns sandboxes, templates, volumes, keys and secrets. */
export type TeamRecord = {
  teamId: string;
  name: string;
  slug: string;
  limits: Partial<TeamLimits>;
  banned: boolean;
  blocked: boolean;
  /** What its pauses survive by default. */
  pauseDurability: Durability;
  createdAtUs: number;
};

/** A person. */
export type UserRecord = {
  userId: string;
  email: string | null;
  name: string;
  createdAtUs: number;
  /** May do what the operator may, when signed in by a password or a link. */
  isOperator: boolean;
  hasPassword: boolean;
};

/** A team of a user. `isDefault`: it is used where none is named. */
export type Membership = { team: TeamRecord; isDefault: boolean; role: Role };

/** A member of a team. */
export type MemberRecord = { user: UserRecord; role: Role; sinceUs: number };

/** An invitation into a team that nobody has accepted yet. */
export type InvitationRecord = {
  invitationId: string;
  digest: string;
  teamId: string;
  role: Role;
  note: string;
  createdAtUs: number;
  expiresAtUs: number;
};
