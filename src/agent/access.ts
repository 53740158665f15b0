import { AtollError } from '../base/error.ts';
import { controlTokenHeader } from '../protocol/agent.ts';
import { tokensEqual } from './token.ts';

/** Throws `unauthenticated` unless the request carries the sandbox's token, if the sandbox has one. */
export function requireAccess(request: Request, accessToken: string | null): void {
  if (accessToken === null) return;
  const given = request.headers.get('x-access-token');
  if (given === null || given === '')
    throw new AtollError('unauthenticated', 'the sandbox is secured: the header X-Access-Token is missing');
  if (!tokensEqual(given, accessToken))
    throw new AtollError('unauthenticated', 'the access token in X-Access-Token is not the one of this sandbox');
}

/** Says whether the request is the platform's own. */
export function isPlatform(request: Request, controlToken: string): boolean {
  const given = request.headers.get(controlTokenHeader);
  return given !== null && controlToken !== '' && tokensEqual(given, controlToken);
}
