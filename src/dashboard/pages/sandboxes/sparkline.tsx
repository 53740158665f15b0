import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { SandboxMetric } from '../../../protocol/api/metrics.ts';
import { askJson } from '../../api/client.ts';
import { useTeam } from '../../api/session.tsx';

const shownSeconds = 15 * 60;
const everyMs = 30_000;
/** A row that is scrolled past, or pushed out by newer ones, asks for nothing. */
const restMs = 1_500;
const [width, height] = [64, 18];
/** What fills the height at least, percent: an idle sandbox is a flat line and no mountain. */
const fullPercentMin = 20;

/** The line through the samples of the last quarter of an hour, as the points of an SVG; null where there is none. */
export function sparkPoints(samples: readonly { timestampUnix: number; cpuUsedPct: number }[], now: number) {
  const shown = samples.filter(({ timestampUnix }) => timestampUnix > now - shownSeconds);
  if (shown.length < 2) return null;
  const full = Math.max(fullPercentMin, ...shown.map(({ cpuUsedPct }) => cpuUsedPct));
  return shown
    .map(({ timestampUnix, cpuUsedPct }) => {
      const x = width * (1 - (now - timestampUnix) / shownSeconds);
      const y = 1 + (height - 2) * (1 - cpuUsedPct / full);
      return `${Math.min(width, x).toFixed(1)},${y.toFixed(1)}`;
    })
    .join(' ');
}

/** The processor's last quarter of an hour in a running sandbox. */
export function Sparkline({ sandboxId }: { sandboxId: string }) {
  const { teamID } = useTeam();
  const [rests, setRests] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setRests(true), restMs);
    return () => clearTimeout(timer);
  }, []);
  // Not by the path: events of sandboxes have nothing to do with it.
  const samples = useQuery({
    queryKey: ['sparkline', teamID, sandboxId],
    queryFn({ signal }) {
      const end = Math.floor(Date.now() / 1000);
      const path = `/sandboxes/${encodeURIComponent(sandboxId)}/metrics`;
      return askJson<SandboxMetric[]>(path, { team: teamID, query: { start: end - shownSeconds, end }, signal });
    },
    refetchInterval: everyMs,
    enabled: rests,
    retry: false,
  });
  const points = sparkPoints(samples.data ?? [], samples.dataUpdatedAt / 1000);
  return (
    <svg className="sparkline" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden>
      {points !== null && <polyline points={points} />}
    </svg>
  );
}
