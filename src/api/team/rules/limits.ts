import type { TeamLimits, TeamRecord } from '../record.ts';

/** The limits of a team unless the installation or the team's own row sets others. */
export const defaultLimits: TeamLimits = {
  concurrentSandboxes: 500,
  concurrentBuilds: 20,
  // Rows, each of a few KiB at most: this limits the size of the database. It is more than people keep on purpose.
  sandboxes: 20_000,
  templates: 1_000,
  builds: 10_000,
  snapshots: 10_000,
  lifetimeHours: 24,
  cpuCount: 8,
  memoryMiB: 8192,
  diskMiB: 20_480,
  // Far above the requests of a program with hundreds of sandboxes, and far below what would take all of the platform's
  // time.
  requestsPerSecond: 300,
  volumes: 100,
  volumeMiB: 10_240,
};

/** The limits that apply to a team: its own, and the installation's for the others. */
export type LimitsOf = (team: Pick<TeamRecord, 'limits'>) => TeamLimits;

/** `changed`: the installation's differences from `defaultLimits`. */
export function limitsFrom(changed: Partial<TeamLimits>): LimitsOf {
  const installation = { ...defaultLimits, ...changed };
  return team => ({ ...installation, ...team.limits });
}
