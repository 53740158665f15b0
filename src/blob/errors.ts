import { AtollError, systemCodeOf } from '../base/error.ts';

/** The answers of S3 stores to wrong keys. */
const refusals = new Set([
  'AccessDenied',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'AuthorizationHeaderMalformed',
  'InvalidToken',
  'ExpiredToken',
  'RequestTimeTooSkewed',
  // versitygw's answer for an unknown key.
  'XAdminUserNotFound',
]);
const fullCodes = new Set([
  'ENOSPC',
  'EDQUOT',
  'QuotaExceeded',
  'InsufficientStorage',
  'XMinioStorageFull',
  'ServiceQuotaExceeded',
]);

/** The meaning of a store's failed call for an operator; contains nothing of what was sent. */
export function explained(place: string, error: unknown): AtollError {
  if (error instanceof AtollError) return error;
  const code = systemCodeOf(error);
  const options = { fields: { storeError: code || 'unknown' }, cause: new Error(code || 'the store failed') };
  if (refusals.has(code))
    return new AtollError(
      'precondition',
      `The store ${place} refuses the keys (${code}): check ATOLL_STORE_KEY_ID, ATOLL_STORE_SECRET and what they ` +
        'may do',
      { ...options, detail: 'store_refused' },
    );
  if (code === 'NoSuchBucket' || code === 'InvalidBucketName')
    return new AtollError('precondition', `The store ${place} has no such bucket: make it, or correct ATOLL_STORE`, {
      ...options,
      detail: 'store_refused',
    });
  if (code === 'EACCES' || code === 'EROFS' || code === 'ENOTDIR')
    return new AtollError('precondition', `The store ${place} can't be written (${code})`, {
      ...options,
      detail: 'store_refused',
    });
  if (fullCodes.has(code))
    return new AtollError('no_space', `The store of this cluster is full (${code})`, {
      ...options,
      fields: { ...options.fields, place },
    });
  return new AtollError('unavailable', `The store ${place} is out of reach${code ? ` (${code})` : ''}`, {
    ...options,
    detail: 'store_unavailable',
    retryAfterSeconds: 5,
  });
}
