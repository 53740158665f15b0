import { infiniteQueryOptions } from '@tanstack/react-query';
import type { ListedSandbox } from '../../../protocol/api/sandbox.ts';
import { ask } from '../../api/client.ts';
import { sinceMs } from './search.ts';
import type { SandboxesSearch } from './search.ts';

type Page = { items: ListedSandbox[]; next: string | null; running: number | null };

const minuteMs = 60_000;
/** Rows of the first page: enough for any window, and quick to load. Further pages have the API's full length. */
const firstRows = 50;

/** The query for the sandboxes that match a search, page by page. `now`: the platform's time, ms. */
export function listingOf(teamID: string, search: SandboxesSearch, now: number) {
  const { show, template, text, node, since, metadata, order } = search;
  // Rounded to the minute, so that the query stays the same for a while.
  const startedAfter = since && new Date(Math.floor(now / minuteMs) * minuteMs - sinceMs[since]).toISOString();
  const query = { state: show ?? 'running,paused', template, text, nodeID: node, startedAfter, metadata, order };
  return infiniteQueryOptions({
    queryKey: ['/v2/sandboxes', teamID, query],
    initialPageParam: null as string | null,
    queryFn: async ({ pageParam, signal }): Promise<Page> => {
      const page = pageParam === null ? { limit: firstRows } : { nextToken: pageParam };
      const response = await ask('/v2/sandboxes', { team: teamID, query: { ...query, ...page }, signal });
      const running = response.headers.get('X-Total-Running');
      return {
        items: (await response.json()) as ListedSandbox[],
        next: response.headers.get('X-Next-Token'),
        running: running === null ? null : Number(running),
      };
    },
    getNextPageParam: ({ next }) => next,
  });
}
