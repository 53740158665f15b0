import { createECDH, createHash, createPrivateKey, hkdfSync, type KeyObject } from 'node:crypto';

/** Seconds for which one key signs. Its successor is published for as long before it signs, and it itself after. */
const keyLifeSeconds = 30 * 24 * 3600;

/** Order of the group of P-256 (SEC 2, 2.4.2). */
const groupOrder = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
/** So many bits beyond the order's that every scalar is as likely as any other (FIPS 186-5, A.2.1). */
const derivedBytes = 48;
const coordinateBytes = 32;

/** A public key as verifiers read it (RFC 7517, RFC 7518 6.2). */
export type PublicKey = { kty: 'EC'; crv: 'P-256'; x: string; y: string; kid: string; use: 'sig'; alg: 'ES256' };

/** Signs for one span of time. */
export type SigningKey = { privateKey: KeyObject; publicKey: PublicKey };

/** The number of the key that signs at a time. */
export const keyNumberAt = (seconds: number): number => Math.floor(seconds / keyLifeSeconds);

/**
 * The key of a number, derived from the installation's seed: every process of the installation has the same without
 * telling another, and nothing that is stored has to be kept from anybody.
 */
export function signingKey(seed: Uint8Array, keyNumber: number): SigningKey {
  const bits = Buffer.from(hkdfSync('sha256', seed, new Uint8Array(), `identity tokens ${keyNumber}`, derivedBytes));
  const scalar = (BigInt(`0x${bits.toString('hex')}`) % (groupOrder - 1n)) + 1n;
  const secret = Buffer.from(scalar.toString(16).padStart(coordinateBytes * 2, '0'), 'hex');
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(secret);
  // 4, x, y: an uncompressed point (SEC 1, 2.3.3).
  const point = pair.getPublicKey();
  const x = point.subarray(1, 1 + coordinateBytes).toString('base64url');
  const y = point.subarray(1 + coordinateBytes).toString('base64url');
  const jwk = { kty: 'EC', crv: 'P-256', x, y } as const;
  return {
    privateKey: createPrivateKey({ format: 'jwk', key: { ...jwk, d: secret.toString('base64url') } }),
    publicKey: { ...jwk, kid: thumbprint(jwk), use: 'sig', alg: 'ES256' },
  };
}

/** Source: RFC 7638, members in the order of their names. */
function thumbprint({ crv, kty, x, y }: Pick<PublicKey, 'crv' | 'kty' | 'x' | 'y'>): string {
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
}
