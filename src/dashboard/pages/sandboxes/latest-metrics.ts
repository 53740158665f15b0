import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { SandboxMetric } from '../../../protocol/api/metrics.ts';
import { askJson } from '../../api/client.ts';
import { useTeam } from '../../api/session.tsx';

/** How often the numbers of the rows are asked for. */
const everyMs = 5_000;
/** Sandboxes whose numbers are asked for at a time. */
const sandboxesMax = 100;
/** Rows that come and go while one scrolls are not asked about. */
const restMs = 300;
/** What other rows had is kept no longer: rows of a busy list are others twice a second. */
const keptMs = 1_000;

/** The latest numbers of these sandboxes, by ID; of those that have just come into sight, a moment later. */
export function useLatestMetrics(sandboxIds: readonly string[]): Record<string, SandboxMetric> {
  const { teamID } = useTeam();
  const asked = useRested(sandboxIds.slice(0, sandboxesMax).join(','), restMs);
  // Not by the path: events of sandboxes have nothing to do with it.
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

/** A value once it has been the same for so long. */
function useRested<T>(value: T, ms: number): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return rested;
}
