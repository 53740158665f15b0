import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/**
 * Sealing keeps a text secret and unchanged wherever it is stored: AES-256-GCM (NIST SP 800-38D) with a random nonce.
 * The form is `v1.<nonce>.<ciphertext and tag>`, both base64url.
 */

const form = 'v1';
const nonceBytes = 12;
const tagBytes = 16;

/** A key for one purpose, from a secret that serves several: keys of different purposes tell nothing of each other. */
export function sealKey(secret: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(), purpose, 32));
}

/** `place` says where the text belongs: it opens nowhere else, so that rows can't be exchanged in the database. */
export function seal(key: Uint8Array, text: string, place: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(place));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return [form, nonce.toString('base64url'), sealed.toString('base64url')].join('.');
}

/** Throws when the text was changed, belongs elsewhere or was sealed with another key. */
export function unseal(key: Uint8Array, sealed: string, place: string): string {
  const [version, nonce = '', data = ''] = sealed.split('.');
  if (version !== form) throw new Error('sealed text is of an unknown form');
  const bytes = Buffer.from(data, 'base64url');
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'))
    .setAAD(Buffer.from(place))
    .setAuthTag(bytes.subarray(-tagBytes));
  return decipher.update(bytes.subarray(0, -tagBytes), undefined, 'utf8') + decipher.final('utf8');
}
