import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/**
 * Compares two secrets without revealing by its duration where they differ. Both are hashed first, which hides their
 * lengths too.
 */
export function secretsEqual(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/**
 * 64 hex characters that only the holder of `seed` can compute for `label`. The same input always gives the same token.
 */
export function deriveToken(seed: Uint8Array, label: string): string {
  return createHmac('sha256', seed).update(label).digest('hex');
}

/** SHA-256, hexadecimal. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

/** That many random bytes, hexadecimal: fit for a secret. */
export function randomHex(bytes: number): string {
  return randomBytes(bytes).toString('hex');
}
