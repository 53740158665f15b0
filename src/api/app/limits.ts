import type { TeamLimits } from '../store/team.ts';

/** What a team may do where neither the installation nor the team's own row says otherwise. */
export const defaultLimits: TeamLimits = {
  concurrentSandboxes: 500,
  concurrentBuilds: 20,
  lifetimeHours: 24,
  cpuCount: 8,
  memoryMiB: 8192,
  diskMiB: 20_480,
  // One machine's own users are not to be slowed down; an operator with strangers sets this.
  requestsPerSecond: 0,
  volumes: 100,
  volumeMiB: 10_240,
};
