import { type Answer, plainAnswer } from '../answer/answer.ts';
import type { RequestHead } from '../../http1/request-head.ts';
import type { EdgeLimits } from '../limits.ts';

/**
 * Methods that the API and the agents accept. For others, their runtime closes the connection or answers without them.
 */
const methods = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'];

/** Why a request may go to none of our own servers; undefined: it may. */
export function refusalOfOwn(head: RequestHead, { ownRequestHeadBytesMax }: EdgeLimits): Answer | undefined {
  if (!methods.some(method => head.methodIs(method))) return plainAnswer(501, 'This method is not served here');
  if (head.end - head.start > ownRequestHeadBytesMax) {
    return plainAnswer(431, `The request's head is longer than ${ownRequestHeadBytesMax} bytes`);
  }
  return undefined;
}
