import { AtollError } from '../../base/error.ts';
import { type FileOperation, fileSignature, signatureParameter, signedFileOf } from '../../protocol/file-signature.ts';
import { requireAccess } from '../access.ts';
import { tokensEqual } from '../token.ts';

/**
 * Admits a request for a file by the sandbox's token or by a signature in the URL. Throws `unauthenticated`. The
 * signature is checked before its expiry, so that the two answers tell a stranger nothing.
 */
export function requireFileAccess(
  request: Request,
  query: URLSearchParams,
  operation: FileOperation,
  accessToken: string | null,
): void {
  if (accessToken === null) return;
  if (request.headers.has('x-access-token')) return requireAccess(request, accessToken);
  const given = query.get(signatureParameter);
  if (!given) throw new AtollError('unauthenticated', 'missing signature query parameter');
  const signed = signedFileOf(query, operation);
  const { expiration } = signed;
  if (!tokensEqual(given, fileSignature(signed, accessToken)))
    throw new AtollError('unauthenticated', 'invalid signature');
  if (expiration !== null && !(Number(expiration) >= Math.floor(Date.now() / 1000)))
    throw new AtollError('unauthenticated', 'signature is already expired');
}
