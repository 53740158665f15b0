import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { SandboxMetric } from '../../../protocol/api/metrics.ts';
import { askJson } from '../../api/client.ts';
import { useTeam } from '../../api/session.tsx';
import { useClockLead } from '../../parts/bits.tsx';

const shownSeconds = 15 * 60;
/** The shortest time that fills a line. */
const youngSeconds = 60;
const everyMs = 30_000;
/** How long data of rows that are gone is cached: a busy list has thousands. */
const keptMs = 30_000;
/** Interval while there is no line yet. */
const firstMs = 5_000;
/** A row that is scrolled past or pushed out by newer ones makes no request. */
const restMs = 1_500;
const [width, height] = [48, 18];
/** Least value at the full height, of one: an idle sandbox is a flat line, not a mountain. */
const fullMin = 0.2;

/** The values that lines show, each as a share of the sandbox's limit. */
const shares = {
  cpu: ({ cpuUsedPct }: SandboxMetric) => cpuUsedPct / 100,
  memory: ({ memUsed, memTotal }: SandboxMetric) => memUsed / memTotal,
  disk: ({ diskUsed, diskTotal }: SandboxMetric) => diskUsed / diskTotal,
};

type Point = { timestampUnix: number; share: number };

/** The line through the samples of the last quarter of an hour, as the points of an SVG; null if there is none. */
export function sparkPoints(samples: readonly Point[], now: number): string | null {
  const shown = samples.filter(({ timestampUnix }) => timestampUnix > now - shownSeconds);
  if (shown.length < 2) return null;
  const full = Math.max(fullMin, ...shown.map(({ share }) => share));
  // For a younger sandbox, its whole life fills the line.
  const seconds = Math.max(youngSeconds, now - (shown[0]?.timestampUnix ?? 0));
  return shown
    .map(({ timestampUnix, share }) => {
      const x = width * (1 - (now - timestampUnix) / seconds);
      const y = 1 + (height - 2) * (1 - share / full);
      return `${Math.min(width, x).toFixed(1)},${y.toFixed(1)}`;
    })
    .join(' ');
}

/** Whether a row has shown the same sandbox for a while. */
export function useRests(sandboxId: string): boolean {
  const [rested, setRested] = useState<string>();
  useEffect(() => {
    const timer = setTimeout(() => setRested(sandboxId), restMs);
    return () => clearTimeout(timer);
  }, [sandboxId]);
  return rested === sandboxId;
}

/** A running sandbox's use in the last quarter of an hour, for the lines of its row. */
export function useRecent(sandboxId: string): { samples: SandboxMetric[]; at: number } {
  const { teamID } = useTeam();
  const lead = useClockLead();
  // Not keyed by path: events of sandboxes must not make it read again.
  const { data = [], dataUpdatedAt } = useQuery({
    queryKey: ['sparkline', teamID, sandboxId],
    queryFn({ signal }) {
      const end = Math.floor((Date.now() + lead) / 1000);
      const path = `/sandboxes/${encodeURIComponent(sandboxId)}/metrics`;
      return askJson<SandboxMetric[]>(path, { team: teamID, query: { start: end - shownSeconds, end }, signal });
    },
    refetchInterval: ({ state }) => ((state.data?.length ?? 0) < 2 ? firstMs : everyMs),
    retry: false,
    gcTime: keptMs,
  });
  return { samples: data, at: (dataUpdatedAt + lead) / 1000 };
}

/** The values that have a line. */
export type Shared = keyof typeof shares;

type SparklineProps = { of: Shared; recent: ReturnType<typeof useRecent> };

/** The last quarter of an hour of a sandbox as a line. */
export function Sparkline({ of, recent: { samples, at } }: SparklineProps) {
  const share = shares[of];
  const points = sparkPoints(
    samples.map(sample => ({ timestampUnix: sample.timestampUnix, share: share(sample) })),
    at,
  );
  return (
    <svg className="sparkline" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden>
      {points !== null && <polyline points={points} />}
    </svg>
  );
}
