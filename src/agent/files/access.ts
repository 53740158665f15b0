import { AtollError } from '../../base/error.ts';
import { requireAccess } from '../access.ts';
import { tokensEqual } from '../token.ts';

export type FileOperation = 'read' | 'write';

/**
 * Lets a request for a file in by the sandbox's token or by a signature in the URL. Throws `unauthenticated`.
 * A signature is looked at before its expiry, so that the two answers tell a stranger nothing.
 */
export function requireFileAccess(request: Request, query: URLSearchParams, operation: FileOperation, accessToken: string | null): void {
  if (accessToken === null) return;
  if (request.headers.has('x-access-token')) return requireAccess(request, accessToken);
  const given = query.get('signature');
  if (!given) throw new AtollError('unauthenticated', 'missing signature query parameter');
  const expiration = query.get('signature_expiration');
  const expected = fileSignature(query.get('path') ?? '', operation, query.get('username') ?? '', accessToken, expiration);
  if (!tokensEqual(given, expected)) throw new AtollError('unauthenticated', 'invalid signature');
  if (expiration !== null && !(Number(expiration) >= Math.floor(Date.now() / 1000))) throw new AtollError('unauthenticated', 'signature is already expired');
}

/** What whoever knows the token of a sandbox signs a file's URL with. `expiration`: Unix seconds in decimal, or null for none. */
export function fileSignature(path: string, operation: FileOperation, username: string, accessToken: string, expiration: string | null): string {
  const parts = [path, operation, username, accessToken, ...(expiration === null ? [] : [expiration])];
  const digest = new Bun.CryptoHasher('sha256').update(parts.join(':')).digest('base64');
  return `v1_${digest.replace(/=+$/, '')}`;
}
