import type { TeamLimits, TeamRecord } from '../record.ts';

/** What a team may do where neither the installation nor the team's own row says otherwise. */
export const defaultLimits: TeamLimits = {
  concurrentSandboxes: 500,
  concurrentBuilds: 20,
  // Rows, each of a few KiB at most: what bounds the database. Beyond what people keep on purpose.
  sandboxes: 20_000,
  templates: 1_000,
  builds: 10_000,
  snapshots: 10_000,
  lifetimeHours: 24,
  cpuCount: 8,
  memoryMiB: 8192,
  diskMiB: 20_480,
  // Far above what a program with hundreds of sandboxes asks for, and far below what takes the platform's whole time.
  requestsPerSecond: 300,
  volumes: 100,
  volumeMiB: 10_240,
};

/** The limits that hold for a team: its own, and the installation's where it has none of its own. */
export type LimitsOf = (team: Pick<TeamRecord, 'limits'>) => TeamLimits;

/** `changed`: what differs from `defaultLimits` on this installation. */
export function limitsFrom(changed: Partial<TeamLimits>): LimitsOf {
  const installation = { ...defaultLimits, ...changed };
  return team => ({ ...installation, ...team.limits });
}
