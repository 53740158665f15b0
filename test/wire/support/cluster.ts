import { readdirSync } from 'node:fs';
import { type CertificatePair, certifyKey, makeAuthority, newKey } from '../../../src/base/crypto/certificate.ts';
import { controlName, nodeName, type ControlRole } from '../../../src/base/crypto/cluster-names.ts';
import { sha256Hex } from '../../../src/base/crypto/secret.ts';

/** A pair of a key and a certificate for it. */
export function signed(
  authority: CertificatePair,
  names: string[],
  use: 'server' | 'client',
  days = 1,
): CertificatePair & { digest: string } {
  const { key, publicKey } = newKey();
  const certificate = certifyKey(authority, publicKey, { names, use, days });
  return { certificate, key, digest: digestOf(certificate) };
}

/** SHA-256 of a certificate in PEM, hex. */
const digestOf = (certificate: string): string =>
  sha256Hex(Buffer.from(certificate.replace(/-----[^-]+-----|\s/g, ''), 'base64'));

/** An authority, and the certificates that it signs. */
export function newAuthority() {
  const own = makeAuthority('a cluster', 30);
  return {
    own,
    node: (nodeId: string) => ({ ...signed(own, [nodeName(nodeId)], 'server'), authority: own.certificate }),
    control: (role: ControlRole) => ({ ...signed(own, [controlName(role)], 'client'), authority: own.certificate }),
  };
}

/** How many files this process has open. */
export const openFiles = (): number => readdirSync('/proc/self/fd').length;
