import { join } from 'node:path';
import type { Log } from '../../base/telemetry/log.ts';
import { certificateFromFiles, type CertificateSource } from '../../supervisor/certificates/files.ts';
import { localAuthority } from '../../supervisor/certificates/local-authority.ts';
import { isWildcard, type Settings } from '../settings/settings.ts';

/** The certificate of the TLS port, and what to trust if an authority of this installation signs it. */
export type Certificate = { source: CertificateSource; authorityFile: string | null };

/**
 * The operator's certificate, or one signed by this installation's authority; undefined without a TLS port. Only root
 * can read either.
 */
export function openCertificate(
  { host, domain, dataDir, tlsPort, tlsCertificate, tlsKey }: Settings,
  log: Log,
): Certificate | undefined {
  if (tlsPort === undefined) return undefined;
  if (tlsCertificate !== undefined && tlsKey !== undefined)
    return { source: certificateFromFiles({ certFile: tlsCertificate, keyFile: tlsKey }, log), authorityFile: null };
  const names = [...new Set([domain, `*.${domain}`, 'localhost', '127.0.0.1', ...(isWildcard(host) ? [] : [host])])];
  const source = localAuthority(join(dataDir, 'tls'), names);
  return { source, authorityFile: source.authorityFile };
}

/** Fails with `invalid` if the operator's certificate can't be used, before anything is made. */
export function requireCertificate({ tlsCertificate, tlsKey }: Settings, log: Log): void {
  if (tlsCertificate !== undefined && tlsKey !== undefined)
    certificateFromFiles({ certFile: tlsCertificate, keyFile: tlsKey }, log);
}
