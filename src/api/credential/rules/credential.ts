import { randomHex, sha256Hex } from '../../../base/crypto/secret.ts';
import type { CredentialRecord } from '../record.ts';

/** The families of credentials, and the prefix of each. */
export const credentialPrefixes = { apiKey: 'e2b_', accessToken: 'sk_e2b_' } as const;
/** A kind of credential. */
export type CredentialFamily = keyof typeof credentialPrefixes;

const randomBytesLength = 20;
const maskPrefixLength = 2;
const maskSuffixLength = 4;

/** A new credential: `text` is shown once and kept nowhere, `record` is what to store. */
export function newCredential(
  family: CredentialFamily,
  name: string,
  createdAtUs: number,
): { text: string; record: CredentialRecord } {
  const value = randomHex(randomBytesLength);
  return {
    text: credentialPrefixes[family] + value,
    record: {
      name,
      digest: digestOfValue(value),
      valueLength: value.length,
      maskPrefix: value.slice(0, maskPrefixLength),
      maskSuffix: value.slice(-maskSuffixLength),
      createdAtUs,
      lastUsedAtUs: null,
    },
  };
}

/** The digest under which a credential is stored, or null for a text that can't belong to its family. */
export function digestOf(family: CredentialFamily, text: string): string | null {
  const prefix = credentialPrefixes[family];
  const value = text.slice(prefix.length);
  if (!text.startsWith(prefix) || !/^(?:[0-9a-f]{2}){8,64}$/.test(value)) return null;
  return digestOfValue(value);
}

function digestOfValue(value: string): string {
  return sha256Hex(Buffer.from(value, 'hex'));
}
