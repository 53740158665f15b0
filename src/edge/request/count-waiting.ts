import type { Client } from '../connection/client.ts';
import type { Upstream } from '../upstream/upstream.ts';

/** What waits on either side of a request counts for `group`: a team, or an address of clients. */
export function countWaiting(client: Client, upstream: Upstream, group: string): void {
  client.countFor(group);
  upstream.countIn(client.context.waiting, group);
}
