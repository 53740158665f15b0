import { AtollError } from '../../../base/error.ts';

/** What a client that repeats a create too early is told by, for programs. */
const underWay = 'idempotency_in_progress';

/** The error for a create whose key another create has, which has not come to its end. */
export function createUnderWay(): AtollError {
  return new AtollError('conflict', 'A create with this Idempotency-Key is under way: ask again', {
    detail: underWay,
    retryAfterSeconds: 1,
  });
}

/** Whether an error is that of `createUnderWay`. */
export function isCreateUnderWay(error: unknown): boolean {
  return error instanceof AtollError && error.detail === underWay;
}

/** The error for a key that came with another request before. */
export function requestMismatch(): AtollError {
  return new AtollError(
    'conflict',
    'header idempotency-key: another request was sent with this key; use a new key for a new request',
    { detail: 'idempotency_request_mismatch' },
  );
}
