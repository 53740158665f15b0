import { createHmac, timingSafeEqual } from 'node:crypto';

/** JSON Web Tokens (RFC 7519) with HMAC-SHA256 and no other algorithm: a token does not choose how it is checked. */

/** The claims of a token by name (RFC 7519 4). */
type Claims = Record<string, unknown>;

const algorithm = 'HS256';
/** Longer tokens were not signed here. */
const charactersMax = 4096;

/** `header`: further members of the token's header. */
export function signToken(key: Uint8Array, header: Record<string, string>, claims: Claims): string {
  const signed = `${encode({ alg: algorithm, typ: 'JWT', ...header })}.${encode(claims)}`;
  return `${signed}.${signatureOf(key, signed).toString('base64url')}`;
}

/** The claims of a token that the holder of `key` has signed, else null. The caller checks what they say. */
export function verifyToken(key: Uint8Array, token: string): Claims | null {
  const [, signed, header, claims, signature] =
    /^(([\w-]+)\.([\w-]+))\.([\w-]+)$/.exec(token.slice(0, charactersMax)) ?? [];
  if (signed === undefined || token.length > charactersMax) return null;
  const given = Buffer.from(signature ?? '', 'base64url');
  const wanted = signatureOf(key, signed);
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return null;
  return decode(header)?.['alg'] === algorithm ? decode(claims) : null;
}

function signatureOf(key: Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function decode(part: string | undefined): Claims | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(part ?? '', 'base64url').toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Claims) : null;
  } catch {
    return null;
  }
}
