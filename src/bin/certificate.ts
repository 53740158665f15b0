import { join } from 'node:path';
import type { Log } from '../base/log.ts';
import { certificateFromFiles, type CertificateSource } from '../edge/tls/certificate-files.ts';
import { localAuthority } from '../edge/tls/local-authority.ts';
import { isWildcard, type Settings } from './settings.ts';

/** The certificate of the TLS port, and what to trust where an authority of this installation signs it. */
export type Certificate = { source: CertificateSource; authorityFile: string | null };

/** The operator's certificate, or one of an authority of this installation; undefined without a TLS port. Both are root's to read. */
export function openCertificate({ host, domain, dataDir, tlsPort, tlsCertificate, tlsKey }: Settings, log: Log): Certificate | undefined {
  if (tlsPort === undefined) return undefined;
  if (tlsCertificate !== undefined && tlsKey !== undefined) return { source: certificateFromFiles({ certFile: tlsCertificate, keyFile: tlsKey }, log), authorityFile: null };
  const names = [...new Set([domain, `*.${domain}`, 'localhost', '127.0.0.1', ...(isWildcard(host) ? [] : [host])])];
  const source = localAuthority(join(dataDir, 'tls'), names);
  return { source, authorityFile: source.authorityFile };
}
