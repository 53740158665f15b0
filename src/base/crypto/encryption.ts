import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/**
 * Authenticated encryption of texts, wherever they are stored: AES-256-GCM (NIST SP 800-38D) with a random nonce.
 * The form is `v1.<nonce>.<ciphertext and tag>`, both base64url.
 */

const form = 'v1';
const nonceBytes = 12;
const tagBytes = 16;

/**
 * A key for one purpose, derived from a secret for several: keys of different purposes say nothing about each other.
 */
export function encryptionKey(secret: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(), purpose, 32));
}

/** Encrypts a text for its `place`. It can be decrypted nowhere else, so that nobody can swap rows of the database. */
export function encrypt(key: Uint8Array, text: string, place: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(place));
  const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return [form, nonce.toString('base64url'), encrypted.toString('base64url')].join('.');
}

/** Decrypts a text. Throws when it was changed, is for another place or was encrypted with another key. */
export function decrypt(key: Uint8Array, encrypted: string, place: string): string {
  const [version, nonce = '', data = ''] = encrypted.split('.');
  if (version !== form) throw new Error('the encrypted text is of an unknown form');
  const bytes = Buffer.from(data, 'base64url');
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'))
    .setAAD(Buffer.from(place))
    .setAuthTag(bytes.subarray(-tagBytes));
  return decipher.update(bytes.subarray(0, -tagBytes), undefined, 'utf8') + decipher.final('utf8');
}
