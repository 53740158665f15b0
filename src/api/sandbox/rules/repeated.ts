import { AtollError } from '../../../base/error.ts';

/** Tells programs that a client repeats a request too early. */
const underWay = 'idempotency_in_progress';

/** The error for a request whose key belongs to another one that has not finished. */
export function requestUnderWay(): AtollError {
  return new AtollError('conflict', 'A request with this Idempotency-Key is under way: ask again', {
    detail: underWay,
    retryAfterSeconds: 1,
  });
}

/** Whether an error is that of `requestUnderWay`. */
export function isUnderWay(error: unknown): boolean {
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

/** The error for a key whose request was cut off: it may have had its effect, and is not carried out again. */
export function requestOutcomeUnknown(): AtollError {
  return new AtollError(
    'conflict',
    'It is not known what became of the request with this Idempotency-Key, which was cut off: look at what is there, ' +
      'and use a new key to ask once more',
    { detail: 'idempotency_outcome_unknown' },
  );
}
