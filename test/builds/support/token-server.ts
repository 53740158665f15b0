import { sign, X509Certificate } from 'node:crypto';
import { issueCertificate, makeAuthority } from '../../../src/base/crypto/certificate.ts';

export const issuer = 'token-server';
const validSeconds = 300;

/**
 * Issues tokens for what is requested, as https://distribution.github.io/distribution/spec/auth/token says: signed
 * JWTs.
 */
export function startTokenServer(login: { username: string; password: string }): {
  realm: string;
  /** PEM. */ authority: string;
  stop(): Promise<void>;
} {
  const authority = makeAuthority('Authority of the test', 1);
  const own = issueCertificate(authority, ['token.test'], 1);
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const header = encode({
    typ: 'JWT',
    alg: 'ES256',
    x5c: [new X509Certificate(own.certificate).raw.toString('base64')],
  });
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      if (request.headers.get('authorization') !== `Basic ${btoa(`${login.username}:${login.password}`)}`)
        return new Response('who are you?', { status: 401 });
      const { searchParams } = new URL(request.url);
      const [type = '', name = '', actions = ''] = (searchParams.get('scope') ?? '').split(':');
      const now = Math.floor(Date.now() / 1000);
      const access = name === '' ? [] : [{ type, name, actions: actions.split(',') }];
      const claims = {
        iss: issuer,
        sub: login.username,
        aud: searchParams.get('service'),
        iat: now,
        nbf: now - 5,
        exp: now + validSeconds,
        jti: crypto.randomUUID(),
        access,
      };
      const text = `${header}.${encode(claims)}`;
      const signature = sign('sha256', Buffer.from(text), { key: own.key, dsaEncoding: 'ieee-p1363' }).toString(
        'base64url',
      );
      return Response.json({ token: `${text}.${signature}`, expires_in: validSeconds });
    },
  });
  return {
    realm: `http://127.0.0.1:${server.port}/token`,
    authority: authority.certificate,
    stop: () => server.stop(true),
  };
}
