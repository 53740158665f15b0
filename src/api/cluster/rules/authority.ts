import { X509Certificate } from 'node:crypto';
import { certifyKey, makeAuthority, newKey } from '../../../base/crypto/certificate.ts';
import { controlName, type ControlRole, nodeName } from '../../../base/crypto/cluster-names.ts';
import { decrypt, encrypt, encryptionKey } from '../../../base/crypto/encryption.ts';
import { sha256Hex } from '../../../base/crypto/secret.ts';
import { AtollError } from '../../../base/error.ts';
import type { ControlIdentity } from '../../../protocol/cluster.ts';
import type { Db } from '../../database/db.ts';
import { findAuthority, keepAuthority } from '../store/authority.ts';

/** Ten years: a cluster lives longer than any of its certificates. */
const authorityDays = 3650;
/** A stolen certificate of a node is good for a week, one of control for a day. */
const nodeDays = 7;
const controlDays = 1;
const controlRenewMs = (controlDays * 86_400_000) / 2;
/** When a node gets a new certificate. */
export const renewAfterSeconds = (nodeDays * 86_400) / 2;
const place = 'cluster authority';

/** The authority of a cluster, for signing. */
export type Authority = {
  /** PEM. */
  readonly certificate: string;
  /** A certificate for a node's own key. Errors: `invalid` for anything but a key. */
  certifyNode(nodeId: string, publicKey: string): string;
  /** When this authority certified a node, microseconds of Unix time; null for a certificate that it did not make. */
  issuedAtUs(nodeId: string, certificate: string): number | null;
  /** A new key and certificate for a process of control. */
  issueControl(role: ControlRole): ControlIdentity;
};

/**
 * Opens the authority, and makes it the first time. Its key is in the database, encrypted by the seed. Errors:
 * `precondition` for another seed than the cluster was made with.
 */
export async function openAuthority(db: Db, seed: Uint8Array): Promise<Authority> {
  const key = encryptionKey(seed, place);
  if (!(await findAuthority(db))) {
    const made = makeAuthority('Atoll cluster', authorityDays);
    await keepAuthority(db, { certificate: made.certificate, sealedKey: encrypt(key, made.key, place) });
  }
  const stored = await findAuthority(db);
  if (!stored) throw new Error('invariant broken: the authority that was kept is not there');
  const pair = { certificate: stored.certificate, key: opened(key, stored.sealedKey) };
  return {
    certificate: pair.certificate,
    certifyNode: (nodeId, publicKey) =>
      certifyKey(pair, publicKey, { names: [nodeName(nodeId)], days: nodeDays, use: 'server' }),
    issuedAtUs: (nodeId, certificate) => issuedAtUs(pair.certificate, nodeId, certificate),
    issueControl(role) {
      const own = newKey();
      const certificate = certifyKey(pair, own.publicKey, {
        names: [controlName(role)],
        days: controlDays,
        use: 'client',
      });
      return { certificate, key: own.key, authority: pair.certificate };
    },
  };
}

/** The identity of a process of control, renewed before it expires. */
export function controlIdentity(authority: Authority, role: ControlRole): () => ControlIdentity {
  let made: { identity: ControlIdentity; atMs: number } | undefined;
  return () => {
    if (!made || performance.now() - made.atMs > controlRenewMs)
      made = { identity: authority.issueControl(role), atMs: performance.now() };
    return made.identity;
  };
}

function opened(key: Uint8Array, sealed: string): string {
  try {
    return decrypt(key, sealed, place);
  } catch (cause) {
    throw new AtollError(
      'precondition',
      'The seed is not the one of this cluster. Copy the file `seed` of the data directory of another control ' +
        "process to this one's; nothing was changed.",
      { cause },
    );
  }
}

function issuedAtUs(authority: string, nodeId: string, pem: string): number | null {
  try {
    const certificate = new X509Certificate(pem);
    if (!certificate.verify(new X509Certificate(authority).publicKey)) return null;
    if (certificate.subjectAltName !== `DNS:${nodeName(nodeId)}`) return null;
    return (Date.parse(certificate.validTo) - nodeDays * 86_400_000) * 1000;
  } catch {
    return null; // not a certificate: it comes from a stranger
  }
}

/** SHA-256 of a certificate in PEM, hex, as TLS shows it. */
export const certificateDigest = (pem: string): string =>
  sha256Hex(Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64'));
