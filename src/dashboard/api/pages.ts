import { useInfiniteQuery } from '@tanstack/react-query';
import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query';
import { useEffect, useEffectEvent } from 'react';
import { ask } from './client.ts';
import type { Query } from './client.ts';
import { useViewer } from './session.tsx';

const pageRows = 100;

/**
 * Some rows of a list, the answer they came in, and the query members for the rows after them; null if these are the
 * last.
 */
type RowsPage<T, Body> = { rows: T[]; body: Body; next: Query | null };

/** A list, as far as it has been read. */
export type Pages<T, Body = unknown> = UseInfiniteQueryResult<InfiniteData<RowsPage<T, Body>>>;

type Kept<T, Body> = { state: { data?: InfiniteData<RowsPage<T, Body>> | undefined } };

type PagesOptions<T, Body> = {
  query?: Query;
  /** Asks as the person or the operator, not for a team. */
  personal?: boolean;
  /** The next page is found by an offset, not by a token that comes with a page. */
  byOffset?: boolean;
  /** Interval of asking again, for each page, ms, if no event tells of a change. */
  every?: number;
  enabled?: boolean;
  /** The rows in an answer that is more than a list. */
  rowsOf?: (body: Body) => T[];
  /** The query for the rows after those of an answer, if its body tells. */
  nextOf?: (body: Body) => Query | null;
};

/** A list that a GET answers page by page, as far as requested; events of the team make it read again. */
export function usePages<T, Body = T[]>(path: string, options: PagesOptions<T, Body> = {}): Pages<T, Body> {
  const { team } = useViewer();
  const { query, personal = false, byOffset = false, every, enabled, nextOf } = options;
  const rowsOf = options.rowsOf ?? (body => body as unknown as T[]);
  const teamID = personal ? undefined : team?.teamID;
  return useInfiniteQuery({
    // Separate from what `useRead` caches under the same path, which is no list of pages.
    queryKey: [path, teamID, query, 'pages'],
    initialPageParam: {} as Query,
    queryFn: async ({ pageParam, signal }): Promise<RowsPage<T, Body>> => {
      const asked = { ...query, ...pageParam, limit: pageRows };
      const response = await ask(path, { team: teamID, query: asked, signal });
      const body = (await response.json()) as Body;
      const rows = rowsOf(body);
      if (nextOf) return { rows, body, next: nextOf(body) };
      const token = response.headers.get('X-Next-Token');
      if (byOffset && rows.length === pageRows)
        return { rows, body, next: { offset: Number(pageParam['offset'] ?? 0) + pageRows } };
      return { rows, body, next: token === null ? null : { nextToken: token } };
    },
    getNextPageParam: ({ next }) => next,
    placeholderData: (previous, before) =>
      before?.queryKey[0] === path && before.queryKey[1] === teamID ? previous : undefined,
    // Each time, all pages are read: with many pages, the interval of a single one would be too short.
    ...(every !== undefined && {
      refetchInterval: ({ state }: Kept<T, Body>) => every * (state.data?.pages.length ?? 1),
    }),
    ...(enabled !== undefined && { enabled }),
  });
}

/** The rows read so far. */
export const rowsOfPages = <T>({ data }: Pages<T>): T[] => data?.pages.flatMap(({ rows }) => rows) ?? [];

/** Reads further pages as long as `isWanted`. A failed page is not requested again and again. */
export function useReadOn<T>(pages: Pages<T>, isWanted: boolean): void {
  const more = useEffectEvent(() => void pages.fetchNextPage({ cancelRefetch: false }));
  const isDue = isWanted && pages.hasNextPage && !pages.isFetching && !pages.isError;
  const read = pages.data?.pages.length;
  // Also depends on how much has been read: a page may arrive before a render shows that it is being fetched.
  useEffect(() => {
    if (isDue) more();
  }, [isDue, read]);
}
