import { sessionOf } from '../session/cookie.ts';

/**
 * Any page may call the API with credentials that the page itself sends. This does not apply to a session, which
 * browsers send.
 */
const everyAnswer: ReadonlyArray<readonly [string, string]> = [
  ['Access-Control-Allow-Origin', '*'],
  [
    'Access-Control-Expose-Headers',
    'X-Next-Token, X-Total-Running, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, Should-Retry',
  ],
];

const allowedHeaders = [
  'Origin, Content-Length, Content-Type, User-Agent, Authorization, X-API-Key, X-Team-ID, X-Admin-Token',
  // Headers in which the JavaScript SDK describes itself.
  'browser, lang, lang_version, machine, os, package_version, processor, publisher, release, sdk_runtime, system',
].join(', ');

const preflightSeconds = 7200;

/** Lets pages of any origin read the answer, unless the request came with a session. */
export function addCors(request: Request, headers: Headers): void {
  if (sessionOf(request.headers) !== null) return;
  for (const [name, value] of everyAnswer) headers.set(name, value);
}

/** The answer to `OPTIONS`, whatever the path: a page learns by the request itself whether a route exists. */
export function preflightResponse(): Response {
  return new Response(null, {
    status: 204,
    headers: {
      'Access-Control-Allow-Methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
      'Access-Control-Allow-Headers': allowedHeaders,
      'Access-Control-Max-Age': String(preflightSeconds),
    },
  });
}
