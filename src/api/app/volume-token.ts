import { sealKey } from '../../base/seal.ts';
import { signToken, verifyToken } from '../../base/json-web-token.ts';
import { newUuid } from '../../base/id.ts';
import { sha256Hex } from '../../base/secret.ts';
import type { VolumeRecord } from '../store/volumes.ts';
import { microsPerSecond } from './clock.ts';
import type { App } from './context.ts';

const keyIdCharacters = 16;

/** A token that opens the content of one volume until it expires, or the volume is deleted. */
export function volumeToken(app: App, volume: VolumeRecord): string {
  const key = keyOf(app);
  const tokenId = newUuid();
  const nowSeconds = Math.floor(app.clock() / microsPerSecond);
  return signToken(
    key,
    { kid: sha256Hex(key).slice(0, keyIdCharacters), tokid: tokenId },
    {
      aud: audienceOf(app),
      iss: audienceOf(app),
      iat: nowSeconds,
      nbf: nowSeconds,
      exp: nowSeconds + app.volumeTokenSeconds,
      jti: tokenId,
      sub: volume.teamId,
      volid: volume.volumeId,
      voltype: 'node',
    },
  );
}

/** The team and the volume that a token of ours names, if it is one and its time has come and not gone; else null. */
export function readVolumeToken(app: App, token: string): { teamId: string; volumeId: string } | null {
  const claims = verifyToken(keyOf(app), token);
  if (!claims) return null;
  const { aud, iss, nbf, exp, sub, volid } = claims;
  const nowSeconds = app.clock() / microsPerSecond;
  if (aud !== audienceOf(app) || iss !== audienceOf(app)) return null;
  // A token is used in the second in which it was made.
  if (typeof nbf !== 'number' || typeof exp !== 'number' || nowSeconds < nbf || nowSeconds >= exp) return null;
  return typeof sub === 'string' && typeof volid === 'string' ? { teamId: sub, volumeId: volid } : null;
}

/** From the installation's seed, which is not in the database. */
function keyOf(app: App): Uint8Array {
  return sealKey(app.seed, 'volume tokens');
}

function audienceOf(app: App): string {
  return `https://api.${app.domain}`;
}
