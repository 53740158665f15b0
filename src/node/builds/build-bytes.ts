import { AtollError } from '../../base/error.ts';

/** How much builds may write, so that no build and no team can fill the disk. */
export type ByteBounds = {
  /** Bytes of the layers that one build makes, including what it fetches for them. */
  perBuild: number;
  /** The same for all builds of a team within `windowMs`. */
  perTeam: number;
  windowMs: number;
};

/** What one build writes to the node's disk. */
export type BuildBytes = {
  /** Errors: `no_space`, with the figures, if it may write no more. */
  require(): void;
  /** How much more it may write. */
  left(): number;
  /** Counts what was written. Errors: `no_space`, with the figures, once it is more than may be. */
  add(bytes: number): void;
};

/** Counts what builds write. What they find in the cache costs nothing. */
export function createBuildBytes(bounds: ByteBounds, nowMs: () => number): { begin(teamId: string): BuildBytes } {
  const teams = new Map<string, { atMs: number; bytes: number }[]>();
  const usedBy = (teamId: string): number => {
    const since = nowMs() - bounds.windowMs;
    const recent = (teams.get(teamId) ?? []).filter(({ atMs }) => atMs > since);
    if (recent.length === 0) teams.delete(teamId);
    else teams.set(teamId, recent);
    return recent.reduce((sum, { bytes }) => sum + bytes, 0);
  };
  return {
    begin(teamId) {
      const own = { atMs: nowMs(), bytes: 0 };
      const refuse = (missing: number) => {
        if (own.bytes + missing > bounds.perBuild)
          throw new AtollError(
            'no_space',
            `the build has made ${gib(own.bytes)} of layers, and a build may make ${gib(bounds.perBuild)}`,
          );
        const used = usedBy(teamId);
        if (used + missing > bounds.perTeam)
          throw new AtollError(
            'no_space',
            `builds of the team have made ${gib(used)} of layers within ${bounds.windowMs / 3_600_000} hours, and ` +
              `may make ${gib(bounds.perTeam)}: what is cached costs nothing`,
          );
      };
      return {
        require: () => refuse(1),
        left: () => Math.max(0, Math.min(bounds.perBuild - own.bytes, bounds.perTeam - usedBy(teamId))),
        add(bytes) {
          if (own.bytes === 0) teams.set(teamId, [...(teams.get(teamId) ?? []), own]);
          own.bytes += bytes;
          refuse(0);
        },
      };
    },
  };
}

function gib(bytes: number): string {
  return bytes < 2 ** 30 ? `${Math.ceil(bytes / 2 ** 20)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
