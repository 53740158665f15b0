import type { ProviderUrl } from '../../protocol/api/session.ts';
import { askJson } from '../api/client.ts';

/** In the session storage, which no other origin and no other tab reads. */
const secretName = 'sign-in at the identity provider';
const secretBytes = 32;

const hex = (bytes: Uint8Array) => Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');

/** Leaves for the identity provider. Its answer is valid only for this tab, which keeps a secret for it. */
export async function goToProvider(): Promise<void> {
  const secret = hex(crypto.getRandomValues(new Uint8Array(secretBytes)));
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secret));
  const body = { binding: hex(new Uint8Array(digest)) };
  const { url } = await askJson<ProviderUrl>('/session/provider', { method: 'POST', body });
  sessionStorage.setItem(secretName, secret);
  location.assign(url);
}

/** The provider's answer and this tab's secret, which is then forgotten; null if nobody comes from the provider. */
export function answerOfProvider(): { query: string; secret: string } | null {
  const query = location.search.slice(1);
  if (!new URLSearchParams(query).has('state')) return null;
  const secret = sessionStorage.getItem(secretName) ?? '';
  sessionStorage.removeItem(secretName);
  return { query, secret };
}
