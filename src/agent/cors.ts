const methods = 'HEAD, GET, POST, PUT, PATCH, DELETE';
const exposed =
  'Location, Cache-Control, X-Content-Type-Options, Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, ' +
  'Grpc-Encoding, Grpc-Accept-Encoding, Connect-Content-Encoding, Connect-Accept-Encoding, Content-Encoding';
const preflightSeconds = '7200';

/**
 * Lets pages of any origin read the answer: a sandbox is protected by its token, which browsers don't attach by
 * themselves.
 */
export function allowOrigins(request: Request, response: Response): Response {
  if (!request.headers.has('origin')) return response;
  response.headers.set('access-control-allow-origin', '*');
  response.headers.set('access-control-expose-headers', exposed);
  return response;
}

/** The answer to a browser that asks whether it may send a request. */
export function preflight(request: Request): Response {
  const headers: Record<string, string> = {
    'access-control-allow-origin': '*',
    'access-control-allow-methods': methods,
    'access-control-max-age': preflightSeconds,
    vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
  };
  // With a wildcard, browsers would leave out Authorization, so the answer repeats what was asked for.
  const asked = request.headers.get('access-control-request-headers');
  if (asked !== null) headers['access-control-allow-headers'] = asked;
  return new Response(null, { status: 204, headers });
}
