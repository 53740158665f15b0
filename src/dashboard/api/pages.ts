import { useInfiniteQuery } from '@tanstack/react-query';
import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query';
import { useEffect, useEffectEvent } from 'react';
import { ask } from './client.ts';
import type { Query } from './client.ts';
import { useViewer } from './session.tsx';

const pageRows = 100;

/**
 * Some rows of a list, the answer that they came in, and what the question for those after them adds; null where these
 * are the last.
 */
type RowsPage<T, Body> = { rows: T[]; body: Body; next: Query | null };

/** A list as far as it has been read. */
export type Pages<T, Body = unknown> = UseInfiniteQueryResult<InfiniteData<RowsPage<T, Body>>>;

type Kept<T, Body> = { state: { data?: InfiniteData<RowsPage<T, Body>> | undefined } };

type PagesOptions<T, Body> = {
  query?: Query;
  /** Ask as the person or the operator, not for a team. */
  personal?: boolean;
  /** The list is skipped into by a number, and not by the token that comes with a page. */
  byOffset?: boolean;
  /** Ask again after so long for each page, ms, where no event tells of a change. */
  every?: number;
  enabled?: boolean;
  /** The rows of an answer that is more than a list. */
  rowsOf?: (body: Body) => T[];
  /** What asks for the rows after those of an answer, where its body tells. */
  nextOf?: (body: Body) => Query | null;
};

/** A list that a GET answers page by page, as far as one asks for more; events of the team have it asked again. */
export function usePages<T, Body = T[]>(path: string, options: PagesOptions<T, Body> = {}): Pages<T, Body> {
  const { team } = useViewer();
  const { query, personal = false, byOffset = false, every, enabled, nextOf } = options;
  const rowsOf = options.rowsOf ?? (body => body as unknown as T[]);
  const teamID = personal ? undefined : team?.teamID;
  return useInfiniteQuery({
    // Beside what `useRead` keeps under the same path, which is no list of pages.
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
    // All pages are asked for each time: of many, as often as of one would be too much.
    ...(every !== undefined && {
      refetchInterval: ({ state }: Kept<T, Body>) => every * (state.data?.pages.length ?? 1),
    }),
    ...(enabled !== undefined && { enabled }),
  });
}

/** The rows that have been read so far. */
export const rowsOfPages = <T>({ data }: Pages<T>): T[] => data?.pages.flatMap(({ rows }) => rows) ?? [];

/** Reads the pages that follow for as long as `isWanted`. What could not be read is not asked for again and again. */
export function useReadOn<T>(pages: Pages<T>, isWanted: boolean): void {
  const more = useEffectEvent(() => void pages.fetchNextPage({ cancelRefetch: false }));
  const isDue = isWanted && pages.hasNextPage && !pages.isFetching && !pages.isError;
  const read = pages.data?.pages.length;
  // Also by how much has been read: a page may be there before it was seen that it is asked for.
  useEffect(() => {
    if (isDue) more();
  }, [isDue, read]);
}
