import { useInfiniteQuery } from '@tanstack/react-query';
import { ask } from './client.ts';
import type { Query } from './client.ts';
import { useViewer } from './session.tsx';

const pageRows = 100;

/** Some rows of a list, and what the question for those after them adds; null where these are the last. */
export type RowsPage<T> = { rows: T[]; next: Query | null };

type PagesOptions = {
  query?: Query;
  /** Ask as the person or the operator, not for a team. */
  personal?: boolean;
  /** The list is skipped into by a number, and not by the token that comes with a page. */
  byOffset?: boolean;
};

/** A list that a GET answers page by page, as far as one asks for more; events of the team have it asked again. */
export function usePages<T>(path: string, { query, personal = false, byOffset = false }: PagesOptions = {}) {
  const { team } = useViewer();
  const teamID = personal ? undefined : team?.teamID;
  return useInfiniteQuery({
    // Beside what `useRead` keeps under the same path, which is no list of pages.
    queryKey: [path, teamID, query, 'pages'],
    initialPageParam: {} as Query,
    queryFn: async ({ pageParam, signal }): Promise<RowsPage<T>> => {
      const asked = { ...query, ...pageParam, limit: pageRows };
      const response = await ask(path, { team: teamID, query: asked, signal });
      const rows = (await response.json()) as T[];
      const token = response.headers.get('X-Next-Token');
      if (byOffset && rows.length === pageRows)
        return { rows, next: { offset: Number(pageParam['offset'] ?? 0) + pageRows } };
      return { rows, next: token === null ? null : { nextToken: token } };
    },
    getNextPageParam: ({ next }) => next,
    placeholderData: (previous, before) =>
      before?.queryKey[0] === path && before.queryKey[1] === teamID ? previous : undefined,
  });
}
