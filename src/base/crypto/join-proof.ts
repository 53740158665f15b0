import { createHmac, sign, verify, X509Certificate } from 'node:crypto';
import { AtollError } from '../error.ts';
import { randomHex, sha256Hex } from './secret.ts';

// The token of an invitation proves two things: to control, that the machine was invited; to the machine, that control
// is the one that invited it. So the token is never sent: each side signs what it says with a key that only the token
// gives.

/** An invitation's token, taken apart. */
type JoinToken = { tokenId: string; /** SHA-256 of the secret part, hex: the key of proofs. */ key: string };

const prefix = 'atoll-join';
const bytes = { id: 8, secret: 32 } as const;
const form = /^atoll-join_([0-9a-f]{16})_([0-9a-f]{64})$/;

/** A new token, and the part of it that control keeps. */
export function newJoinToken(): JoinToken & { text: string } {
  const [tokenId, secret] = [randomHex(bytes.id), randomHex(bytes.secret)];
  return { text: [prefix, tokenId, secret].join('_'), tokenId, key: sha256Hex(secret) };
}

/** Reads a token. Errors: `invalid`. */
export function readJoinToken(text: string): JoinToken {
  const [, tokenId, secret] = form.exec(text.trim()) ?? [];
  if (tokenId === undefined || secret === undefined)
    throw new AtollError('invalid', 'The token is none: it is the line that `atoll cluster invite` prints.');
  return { tokenId, key: sha256Hex(secret) };
}

/**
 * Proves that a holder of the token said `parts`. `side`: the speaker, so that neither side can repeat the other's
 * proof.
 */
export function joinProof(key: string, side: 'node' | 'control', parts: readonly string[]): string {
  return createHmac('sha256', Buffer.from(key, 'hex'))
    .update(JSON.stringify([side, ...parts]))
    .digest('hex');
}

/** Proves that the machine itself joins again, with the key (PEM) of the certificate that it has. Base64. */
export function rejoinProof(key: string, parts: readonly string[]): string {
  return sign('sha256', rejoinText(parts), key).toString('base64');
}

/**
 * SHA-256, hex, of the certificate (PEM) whose key made a proof of `rejoinProof`. Null where another key made it, or
 * where the text is not a certificate. One reader gives both the key and the digest, so that no text can be two
 * certificates.
 */
export function rejoiner(certificate: string, proof: string, parts: readonly string[]): string | null {
  try {
    const { publicKey, raw } = new X509Certificate(certificate);
    return verify('sha256', rejoinText(parts), publicKey, Buffer.from(proof, 'base64')) ? sha256Hex(raw) : null;
  } catch {
    return null; // no certificate, or a proof in another form: from a stranger, that is as good as a wrong proof
  }
}

const rejoinText = (parts: readonly string[]) => Buffer.from(JSON.stringify(['rejoin', ...parts]));
