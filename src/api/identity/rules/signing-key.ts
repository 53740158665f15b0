import { createECDH, createHash, createPrivateKey, hkdfSync, type KeyObject } from 'node:crypto';

/** Seconds for which one key signs. It is published for as long before that, and for as long afterwards. */
const keyLifeSeconds = 30 * 24 * 3600;

/** Order of the group of P-256 (SEC 2, 2.4.2). */
const groupOrder = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
/** Enough bits beyond the order's to make every scalar equally likely (FIPS 186-5, A.2.1). */
const derivedBytes = 48;
const coordinateBytes = 32;

/** A public key in the form that verifiers read (RFC 7517, RFC 7518 6.2). */
export type PublicKey = { kty: 'EC'; crv: 'P-256'; x: string; y: string; kid: string; use: 'sig'; alg: 'ES256' };

/** A key that signs for one span of time. */
export type SigningKey = { privateKey: KeyObject; publicKey: PublicKey };

/** The number of the key that signs at a given time. */
export const keyNumberAt = (seconds: number): number => Math.floor(seconds / keyLifeSeconds);

/**
 * The key with a number, derived from the installation's seed: every process of the installation has the same key
 * without any exchange, and no stored key has to be kept secret.
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
