import { AtollError, messageOf } from '../base/error.ts';
import { agentPort } from '../protocol/agent.ts';
import { apiCrowded, plainAnswer } from './answer.ts';
import type { Client } from './client.ts';
import { Exchange, type ExchangeTarget, type ServeAgain } from './exchange.ts';
import type { RequestHead } from './http/request-head.ts';
import { reachApi } from './reach.ts';
import { upgradeFor } from './upgrade.ts';
import type { Upstream } from './upstream.ts';

/** Sends a request to the API. */
export function serveApi(client: Client, head: RequestHead, attempt: ServeAgain): void {
  const { apiPool, clock, limits } = client.context;
  if (client.origin.apiRequests.full !== null) return client.refuse(apiCrowded(), head);
  const idle = attempt.fresh ? undefined : apiPool.take(clock.nowMs, limits.idleOwnUpstreamTimeoutMs);
  if (idle === undefined) void reachAndBegin(client, head, attempt);
  else begin(client, head, idle, attempt);
}

async function reachAndBegin(client: Client, head: RequestHead, attempt: ServeAgain): Promise<void> {
  const { context } = client;
  const signal = client.beginRouting(head);
  client.origin.apiRequests.take();
  let upstream: Upstream | undefined;
  try {
    upstream = await reachApi(context, signal);
  } catch (error) {
    if (!(error instanceof AtollError) || error.code !== 'canceled') context.log.error('api unreachable', { error: messageOf(error) });
  }
  client.origin.apiRequests.give();
  const sameHead = client.routedHead();
  if (sameHead === undefined) upstream?.close();
  else if (upstream === undefined) client.refuse(plainAnswer(503, 'The API does not answer; try again in a moment'), sameHead);
  else begin(client, sameHead, upstream, attempt);
}

function begin(client: Client, head: RequestHead, upstream: Upstream, attempt: ServeAgain): void {
  const place = client.origin.apiRequests;
  place.take();
  const target: ExchangeTarget = { traffic: null, place, port: 0, plan: { host: null, upgrade: upgradeFor(head, agentPort) } };
  new Exchange(client, target, upstream, head, attempt.again).begin(head);
}
