import type { Share } from '../../base/concurrency/share.ts';
import type { RequestHead } from '../../http1/request-head.ts';
import { type Answer, plainAnswer, sandboxAnswer } from '../answer/answer.ts';
import type { Client } from '../connection/client.ts';
import type { SandboxDirectory } from '../directory/directory.ts';
import type { SandboxTraffic } from '../upstream/sandbox-traffic.ts';
import type { ForwardPlan } from './compose-request.ts';

/** Where a request goes, apart from the connection that carries it. */
export type ExchangeTarget = {
  /** Null: the API. */
  readonly traffic: SandboxTraffic | null;
  /** Tells whether the sandbox still runs. Null: the API. */
  readonly directory: SandboxDirectory | null;
  /** The request's share of what all requests share; returned when the request ends. */
  readonly place: Share;
  readonly port: number;
  readonly plan: ForwardPlan;
  /**
   * Headers named the sandbox, so the answer arrives at an origin that is not its own, where the dashboard is: fields
   * that speak for the whole origin must not pass.
   */
  readonly isForeign: boolean;
  /** A browser may show the answer as a page of the dashboard's origin. */
  readonly isInert: boolean;
};

/** How to try a request again: a kept connection that turns out to be closed is replaced once. */
export type ServeAgain = {
  /** Take a new connection. */
  readonly fresh: boolean;
  /** Serves the same request again, over a new connection. */
  readonly again: (client: Client, head: RequestHead) => void;
};

/**
 * The answer to a client whose request's server failed; `what` says how. Not 502: clients read that as the end of the
 * sandbox.
 */
export function failureOf({ traffic, port }: ExchangeTarget, what: string, head: RequestHead): Answer {
  if (traffic === null) return failureOfApi(what, head);
  return sandboxAnswer(503, `The service on port ${port} ${what}`, { sandboxId: traffic.sandboxId, port }, { port });
}

/** Clients read 503 as a promise that nothing was changed, but the API may have acted before it went away. */
function failureOfApi(what: string, head: RequestHead): Answer {
  if (readingMethods.some(method => head.methodIs(method))) return plainAnswer(503, `The API ${what}`);
  const message = `The API ${what}: what was asked may have been done`;
  return plainAnswer(500, message, { error_code: 'api_connection_lost' });
}

const readingMethods = ['GET', 'HEAD', 'OPTIONS', 'TRACE'];

/**
 * Whether the target still runs, as far as the edge knows. A body that ends with its connection also ends when its
 * server does.
 */
export function goesOn({ traffic, directory }: ExchangeTarget): boolean {
  if (traffic === null || directory === null) return true;
  const route = directory.find(traffic.sandboxId);
  return route instanceof Promise || (route?.state === 'running' && route.executionId === traffic.executionId);
}

/** Whether a request does the same when it arrives twice (RFC 9110 9.2.2). */
export function isSafeToRepeat(head: RequestHead): boolean {
  return idempotentMethods.some(method => head.methodIs(method));
}

const idempotentMethods = [...readingMethods, 'PUT', 'DELETE'];
