import { sha256Hex } from '../../base/crypto/secret.ts';

/**
 * The cookie that holds a session. With `__Host-`, browsers accept it only over an encrypted or local connection and
 * for this very host, so that a page of a sandbox (`3000-ID.DOMAIN`, the same site) can neither read nor set it.
 */
export const sessionCookie = '__Host-atoll';

/** The value of the session's cookie among a browser's cookies, or null. */
export function sessionOf(headers: Headers): string | null {
  for (const pair of (headers.get('cookie') ?? '').split(';')) {
    const text = pair.trim();
    if (text.startsWith(`${sessionCookie}=`)) return text.slice(sessionCookie.length + 1);
  }
  return null;
}

/**
 * Whether the browser says that a page of this very origin sends the request. `same-site` is not enough: sandboxes'
 * pages are of the same site. Other clients say nothing, and need no session.
 */
export function isSameOrigin(headers: Headers): boolean {
  return headers.get('sec-fetch-site') === 'same-origin';
}

/** The `Set-Cookie` that begins a session. */
export function setSession(value: string, maxAgeSeconds: number): string {
  return `${sessionCookie}=${value}; Path=/; Max-Age=${maxAgeSeconds}; Secure; HttpOnly; SameSite=Lax`;
}

/** The `Set-Cookie` that makes the browser forget it. */
export const clearSession = `${sessionCookie}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax`;

/** The digest under which a session is stored, or null for a text that can't be a session's cookie. */
export function sessionDigest(value: string): string | null {
  return /^[0-9a-f]{64}$/.test(value) ? sha256Hex(value) : null;
}
