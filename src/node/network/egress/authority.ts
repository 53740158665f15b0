import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeAuthority, type CertificatePair } from '../../../base/crypto/certificate.ts';

const authorityDays = 3650;

/**
 * The installation's own authority. Sandboxes trust it, so that their connections can be opened for header rules. It
 * is made at the first start; the key is in a file that only root can read, and leaves the platform only for the
 * proxy's memory.
 */
export function readAuthority(dir: string): CertificatePair {
  const paths = { key: join(dir, 'key.pem'), certificate: join(dir, 'cert.pem') };
  // The certificate is written last: if it is there, so is the key.
  if (!existsSync(paths.certificate)) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const made = makeAuthority('Atoll sandbox egress', authorityDays);
    write(paths.key, made.key, 0o600);
    write(paths.certificate, made.certificate, 0o644);
  }
  return { key: readFileSync(paths.key, 'utf8'), certificate: readFileSync(paths.certificate, 'utf8') };
}

/** Writes a file that is either complete or not there. */
function write(path: string, content: string, mode: number): void {
  writeFileSync(`${path}.new`, content, { mode });
  renameSync(`${path}.new`, path);
}

/** Where distributions keep the certificates of the authorities that they trust, all in one file. */
const bundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/**
 * The authorities (PEM) that the host trusts, which may be more than the runtime's own; undefined if none are found.
 */
export function hostRoots(): string | undefined {
  const path = bundles.find(bundle => existsSync(bundle));
  return path && readFileSync(path, 'utf8');
}
