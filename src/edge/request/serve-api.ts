import { AtollError, messageOf } from '../../base/error.ts';
import { agentPort } from '../../protocol/agent.ts';
import { apiCrowded, plainAnswer } from '../answer/answer.ts';
import type { Client } from '../connection/client.ts';
import type { ApiWay } from '../context.ts';
import { Exchange } from '../exchange/exchange.ts';
import type { ExchangeTarget, ServeAgain } from '../exchange/target.ts';
import type { KeptRequestHead, RequestHead } from '../../http1/request-head.ts';
import { countWaiting } from './count-waiting.ts';
import { reachApi } from './reach.ts';
import { upgradeFor } from './upgrade.ts';
import type { Upstream } from '../upstream/upstream.ts';

/** Sends a request to the API. */
export function serveApi(way: ApiWay, client: Client, head: RequestHead, attempt: ServeAgain): void {
  const { apiPool, clock, limits } = way;
  if (client.origin.apiRequests.full !== null) return client.refuse(apiCrowded(), head);
  const idle = attempt.fresh ? undefined : apiPool.take(clock.nowMs, limits.idleOwnUpstreamTimeoutMs);
  if (idle === undefined) void reachAndBegin(way, client, head.keep(), attempt);
  else begin(client, head, idle, attempt);
}

async function reachAndBegin(way: ApiWay, client: Client, head: KeptRequestHead, attempt: ServeAgain): Promise<void> {
  const signal = client.beginRouting();
  client.origin.apiRequests.take();
  let upstream: Upstream | undefined;
  try {
    upstream = await reachApi(way, signal);
  } catch (error) {
    if (!(error instanceof AtollError) || error.code !== 'canceled')
      way.log.error('api unreachable', { error: messageOf(error) });
  }
  client.origin.apiRequests.give();
  if (!client.isRouting) upstream?.close();
  else if (upstream === undefined)
    client.refuse(plainAnswer(503, 'The API does not answer; try again in a moment'), head);
  else begin(client, head, upstream, attempt);
}

function begin(client: Client, head: RequestHead, upstream: Upstream, attempt: ServeAgain): void {
  const place = client.origin.apiRequests;
  place.take();
  const target: ExchangeTarget = {
    traffic: null,
    directory: null,
    place,
    port: 0,
    plan: { host: null, upgrade: upgradeFor(head, agentPort) },
    isForeign: false,
    isInert: false,
  };
  countWaiting(client, upstream, client.origin.network);
  new Exchange(client, target, upstream, head, attempt.again).begin(head);
}
