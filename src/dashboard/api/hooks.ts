import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { UseQueryResult } from '@tanstack/react-query';
import { useCalls } from '../code/calls.tsx';
import { useProof } from '../parts/proof.tsx';
import { useToast } from '../parts/toasts.tsx';
import { askJson } from './client.ts';
import type { Query } from './client.ts';
import { useViewer } from './session.tsx';
import { isStale } from './stale.ts';
import { tellWindows } from './windows.ts';

type ReadOptions = {
  query?: Query;
  /** Interval of asking again, ms, if no event tells of a change. */
  every?: number | false;
  enabled?: boolean;
  /** Keeps the answer until it is explicitly asked for again, because asking is expensive. */
  keep?: boolean;
  /** Asks as the person or the operator, not for a team. */
  personal?: boolean;
};

/** The answer to a GET, cached and shared by path and query; events of the team make it read again. */
export function useRead<T>(path: string, options: ReadOptions = {}): UseQueryResult<T> {
  const { team } = useViewer();
  const teamID = options.personal ? undefined : team?.teamID;
  const { query, every, enabled, keep } = options;
  return useQuery({
    queryKey: [path, teamID, query],
    queryFn: ({ signal }) => askJson<T>(path, { team: teamID, query, signal }),
    // From another query of the same thing; data of another thing must not appear here.
    placeholderData: (previous, before) =>
      before?.queryKey[0] === path && before.queryKey[1] === teamID ? previous : undefined,
    ...(every !== undefined && { refetchInterval: every }),
    ...(enabled !== undefined && { enabled }),
    ...(keep && { staleTime: Number.POSITIVE_INFINITY }),
  });
}

type Change<T> = {
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  body?: unknown;
  then?: (answer: T) => void;
};

/**
 * Changes something and reports the outcome; every path that begins with one of `stale` is read again. While actions
 * show their code, nothing is changed.
 */
export function useChange<T = unknown>(done: string | null, stale: string[], personal = false) {
  const { team } = useViewer();
  const client = useQueryClient();
  const toast = useToast();
  const withProof = useProof();
  const { isShowing, show } = useCalls();
  const teamID = personal ? undefined : team?.teamID;
  const renew = () => {
    tellWindows(stale);
    return client.invalidateQueries({ predicate: ({ queryKey }) => isStale(queryKey[0], stale) });
  };
  const mutation = useMutation({
    async mutationFn({ method, path, body }: Change<T>) {
      return withProof(() => askJson<T>(path, { method, team: teamID, body }));
    },
    onSuccess: (answer, { then }) => {
      if (done !== null) toast({ kind: 'ok', text: done });
      then?.(answer);
    },
    onError: error => toast({ kind: 'danger', text: error.message }),
    onSettled: renew,
  });
  const mutate = (change: Change<T>) =>
    isShowing ? show({ calls: [{ ...change, teamID }], run: () => mutation.mutate(change) }) : mutation.mutate(change);
  return { ...mutation, mutate };
}
