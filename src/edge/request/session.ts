import { plainAnswer } from '../answer/answer.ts';
import type { RequestHead } from '../../http1/request-head.ts';

const sessionCookie = /(?:^|[;,\s])__Host-atoll=/;

/**
 * True for a request that carries a dashboard session. It must not enter a sandbox: a script on the dashboard's own
 * origin that names a sandbox in a routing header would hand the session to whatever runs there.
 */
export function carriesSession({ fields }: RequestHead): boolean {
  return fields.has('cookie') && sessionCookie.test(fields.list('cookie') ?? '');
}

/** The answer to such a request. */
export const sessionAnswer = plainAnswer(
  400,
  "A request into a sandbox must not carry the dashboard's session: send it without cookies",
);
