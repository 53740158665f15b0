import { sign } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { microsPerSecond, type Clock } from '../../../base/clock.ts';
import { writeToken } from '../../../base/crypto/json-web-token.ts';
import { keyNumberAt, signingKey, type PublicKey, type SigningKey } from './signing-key.ts';

/** How long a token is valid, seconds. */
const tokenLifeSeconds = 3600;
/**
 * Seconds after which sandboxes get new tokens: each request leaves with a token that is valid for at least 45 minutes
 * more.
 */
const tokenRenewalSeconds = 900;
/** Tokens to remember, so that a comparison of policies finds the same token in both. */
const rememberedMax = 10_000;

/** The subject of a token. */
type Subject = { sandboxId: string; teamId: string; templateId: string };

/** Vouches for sandboxes to others: OpenID Connect's issuer, with tokens that are JWT-SVIDs of SPIFFE. */
export type Identity = {
  issuer: string;
  /** A token for `audience`; the same one until the next renewal. */
  mint(subject: Subject, audience: string): string;
  /** The keys that verify the tokens valid now, and those of the next signing key. */
  publicKeys(): PublicKey[];
  /** Changes when sandboxes should get new tokens. */
  renewal(): number;
};

/**
 * What an identity is made from. `domain`: that of the installation, the trust domain in the names of its sandboxes.
 */
type IdentityOptions = { seed: Uint8Array; issuer: string; domain: string; clock: Clock };

/** The identity of an installation. */
export function createIdentity({ seed, issuer, domain, clock }: IdentityOptions): Identity {
  const keys = new Map<number, SigningKey>();
  const remembered = new LRUCache<string, string>({ max: rememberedMax });
  const nowSeconds = () => Math.floor(clock() / microsPerSecond);
  const renewal = () => Math.floor(nowSeconds() / tokenRenewalSeconds);
  const keyOf = (keyNumber: number) => {
    const key = keys.get(keyNumber) ?? signingKey(seed, keyNumber);
    keys.set(keyNumber, key);
    return key;
  };
  return {
    issuer,
    renewal,
    mint({ sandboxId, teamId, templateId }, audience) {
      const issuedSeconds = renewal() * tokenRenewalSeconds;
      const name = JSON.stringify([sandboxId, teamId, templateId, audience, issuedSeconds]);
      const known = remembered.get(name);
      if (known !== undefined) return known;
      const token = signed(keyOf(keyNumberAt(issuedSeconds)), {
        iss: issuer,
        sub: `spiffe://${domain}/team/${teamId}/sandbox/${sandboxId}`,
        aud: audience,
        iat: issuedSeconds,
        nbf: issuedSeconds,
        exp: issuedSeconds + tokenLifeSeconds,
        sandbox_id: sandboxId,
        team_id: teamId,
        template_id: templateId,
      });
      remembered.set(name, token);
      return token;
    },
    publicKeys() {
      const present = keyNumberAt(nowSeconds());
      return [present - 1, present, present + 1].map(keyNumber => keyOf(keyNumber).publicKey);
    },
  };
}

/** An ES256 signature is both numbers as they are, one after the other (RFC 7518, 3.4). */
function signed({ privateKey, publicKey: { alg, kid } }: SigningKey, claims: Record<string, string | number>): string {
  return writeToken({ alg, kid }, claims, text =>
    sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }),
  );
}
