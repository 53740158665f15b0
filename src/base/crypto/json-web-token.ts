import { createHmac, timingSafeEqual } from 'node:crypto';
import { parseJson } from '../json-text.ts';

/** JSON Web Tokens (RFC 7519). The check accepts HMAC-SHA256 alone: a token does not choose how it is checked. */

/** The claims of a token by name (RFC 7519 4). */
type Claims = Record<string, unknown>;

const algorithm = 'HS256';
/** Longer tokens can't have been signed here. */
const charactersMax = 4096;

/**
 * The token with these claims (RFC 7515 7.1). `header`: all of its members except `typ`; `alg` names what `sign` does.
 */
export function writeToken(
  header: { alg: string; kid?: string },
  claims: Claims,
  sign: (text: string) => Buffer,
): string {
  const { alg, ...others } = header;
  const signed = `${encode({ alg, typ: 'JWT', ...others })}.${encode(claims)}`;
  return `${signed}.${sign(signed).toString('base64url')}`;
}

/** The token with these claims, signed with `key`. `header`: further members of the token's header. */
export function signToken(key: Uint8Array, header: Record<string, string>, claims: Claims): string {
  return writeToken({ alg: algorithm, ...header }, claims, text => signatureOf(key, text));
}

/** The claims of a token that the holder of `key` signed, else null. The caller checks what they say. */
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
  const value = parseJson(Buffer.from(part ?? '', 'base64url').toString());
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Claims) : null;
}
