import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { SandboxMetric } from '../../../protocol/api/metrics.ts';
import { askJson } from '../../api/client.ts';
import { useTeam } from '../../api/session.tsx';

/** Interval of requests for the rows' numbers. */
const everyMs = 5_000;
/** Sandboxes per request for numbers. */
const sandboxesMax = 100;
/** Rows that pass by while the user scrolls are not asked about. */
const restMs = 300;
/** How long numbers of other rows are cached: a busy list shows different rows twice a second. */
const keptMs = 1_000;

/** The latest numbers of these sandboxes, by ID; a moment later for those that have just come into sight. */
export function useLatestMetrics(sandboxIds: readonly string[]): Record<string, SandboxMetric> {
  const { teamID } = useTeam();
  const asked = useRested(sandboxIds.slice(0, sandboxesMax).join(','), restMs);
  // Not keyed by path: events of sandboxes must not make it read again.
  const { data } = useQuery({
    queryKey: ['latest metrics', teamID, asked],
    queryFn: ({ signal }) =>
      askJson<{ sandboxes: Record<string, SandboxMetric> }>('/sandboxes/metrics', {
        team: teamID,
        query: { sandbox_ids: asked },
        signal,
      }),
    placeholderData: (previous, before) => (before?.queryKey[1] === teamID ? previous : undefined),
    refetchInterval: everyMs,
    enabled: asked !== '',
    gcTime: keptMs,
  });
  return data?.sandboxes ?? {};
}

/** A value once it has stayed the same for this long. */
function useRested<T>(value: T, ms: number): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return rested;
}
