import { createPrivateKey, X509Certificate } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { type CertificatePair, issueCertificate, makeAuthority } from '../../base/crypto/certificate.ts';
import { writeWhole } from '../../base/small-file.ts';
import type { CertificateSource } from './files.ts';

const authorityDays = 3650;
/** Browsers refuse certificates that are valid for more than about a year. */
const serverDays = 365;
const renewalDays = 30;
const dayMs = 86_400_000;

/** An authority of this installation, for operators without a certificate that the world trusts. */
type LocalAuthority = CertificateSource & {
  /** The authority's certificate: whoever trusts this file trusts the installation. */
  readonly authorityFile: string;
};

/**
 * The authority in `folder`, made there on first use (only the owner can read its key), and a server's certificate that
 * it issues for `names`, renewed in time.
 */
export function localAuthority(folder: string, names: readonly string[]): LocalAuthority {
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const authority = load(folder, 'ca') ?? save(folder, 'ca', makeAuthority('Atoll local authority', authorityDays));
  const kept = load(folder, 'server');
  let current = kept !== undefined && serves(kept, authority, names) ? kept : issue();
  return {
    authorityFile: join(folder, 'ca.pem'),
    get current() {
      return current;
    },
    refresh() {
      if (!serves(current, authority, names)) current = issue();
    },
  };

  function issue(): CertificatePair {
    return save(folder, 'server', issueCertificate(authority, names, serverDays));
  }
}

/**
 * Says whether a certificate was issued by the authority for exactly these names, fits its key, and is not about to
 * expire.
 */
function serves(pair: CertificatePair, authority: CertificatePair, names: readonly string[]): boolean {
  const certificate = new X509Certificate(pair.certificate);
  // Compared as texts: a host check would never match a wildcard under a single label (`*.localhost`).
  const held = (certificate.subjectAltName ?? '').split(', ');
  return (
    certificate.verify(new X509Certificate(authority.certificate).publicKey) &&
    certificate.checkPrivateKey(createPrivateKey(pair.key)) &&
    Date.parse(certificate.validTo) - Date.now() > renewalDays * dayMs &&
    held.length === names.length &&
    names.every(name => (isIP(name) === 0 ? held.includes(`DNS:${name}`) : certificate.checkIP(name) !== undefined))
  );
}

function load(folder: string, name: string): CertificatePair | undefined {
  const [certFile, keyFile] = filesOf(folder, name);
  if (!existsSync(certFile) || !existsSync(keyFile)) return undefined;
  return { certificate: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
}

function save(folder: string, name: string, pair: CertificatePair): CertificatePair {
  const [certFile, keyFile] = filesOf(folder, name);
  // The certificate is written last: an incomplete pair counts as none.
  write(keyFile, pair.key, 0o600);
  write(certFile, pair.certificate, 0o644);
  return pair;
}

/** Writes all or nothing, also across a loss of power: an empty file would end every start. */
function write(path: string, text: string, mode: number): void {
  writeWhole(path, text);
  chmodSync(path, mode);
}

function filesOf(folder: string, name: string): [certFile: string, keyFile: string] {
  return [join(folder, `${name}.pem`), join(folder, `${name}-key.pem`)];
}
