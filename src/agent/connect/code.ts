import { AtollError, messageOf, type ErrorCode } from '../../base/error.ts';
import type { ConnectCode } from '../../protocol/connect-status.ts';

const connectCodes: Record<ErrorCode, ConnectCode> = {
  invalid: 'invalid_argument',
  unauthenticated: 'unauthenticated',
  forbidden: 'permission_denied',
  not_found: 'not_found',
  not_acceptable: 'invalid_argument',
  conflict: 'already_exists',
  precondition: 'failed_precondition',
  too_large: 'resource_exhausted',
  rate_limited: 'resource_exhausted',
  canceled: 'canceled',
  unknown: 'unknown',
  internal: 'internal',
  unimplemented: 'unimplemented',
  unavailable: 'unavailable',
  deadline_exceeded: 'deadline_exceeded',
  no_space: 'resource_exhausted',
};

/** An error on the wire: in the body of a unary answer, or at the end of a stream. */
export type WireError = { code: ConnectCode; message: string };

/** The answer to the caller for anything thrown. */
export function wireErrorOf(error: unknown): WireError {
  return { code: error instanceof AtollError ? connectCodes[error.code] : 'internal', message: messageOf(error) };
}
