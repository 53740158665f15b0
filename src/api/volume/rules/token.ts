import { encryptionKey } from '../../../base/crypto/encryption.ts';
import { signToken, verifyToken } from '../../../base/crypto/json-web-token.ts';
import { newUuid } from '../../../base/id.ts';
import { sha256Hex } from '../../../base/crypto/secret.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import type { VolumeRecord } from '../record.ts';
import type { Clock } from '../../../base/clock.ts';

/** What making a token of a volume needs. */
export type VolumeTokenDeps = { clock: Clock; domain: string; seed: Uint8Array; volumeTokenSeconds: number };

const keyIdCharacters = 16;

/** A token that opens the content of one volume until it expires, or the volume is deleted. */
export function volumeToken(
  { clock, domain, seed, volumeTokenSeconds }: VolumeTokenDeps,
  volume: VolumeRecord,
): string {
  const key = keyOf(seed);
  const tokenId = newUuid();
  const nowSeconds = Math.floor(clock() / microsPerSecond);
  return signToken(
    key,
    { kid: sha256Hex(key).slice(0, keyIdCharacters), tokid: tokenId },
    {
      aud: audienceOf(domain),
      iss: audienceOf(domain),
      iat: nowSeconds,
      nbf: nowSeconds,
      exp: nowSeconds + volumeTokenSeconds,
      jti: tokenId,
      sub: volume.teamId,
      volid: volume.volumeId,
      voltype: 'node',
    },
  );
}

/** The team and the volume that one of our tokens names, if it is valid and has not expired; else null. */
export function readVolumeToken(
  { clock, domain, seed }: { clock: Clock; domain: string; seed: Uint8Array },
  token: string,
): { teamId: string; volumeId: string } | null {
  const claims = verifyToken(keyOf(seed), token);
  if (!claims) return null;
  const { aud, iss, exp, sub, volid } = claims;
  const nowSeconds = clock() / microsPerSecond;
  if (aud !== audienceOf(domain) || iss !== audienceOf(domain)) return null;
  // Its start does not matter: only if a clock was set back since can one of our tokens come too early.
  if (typeof exp !== 'number' || nowSeconds >= exp) return null;
  return typeof sub === 'string' && typeof volid === 'string' ? { teamId: sub, volumeId: volid } : null;
}

/** Derived from the installation's seed, which is not in the database. */
function keyOf(seed: Uint8Array): Uint8Array {
  return encryptionKey(seed, 'volume tokens');
}

function audienceOf(domain: string): string {
  return `https://api.${domain}`;
}
