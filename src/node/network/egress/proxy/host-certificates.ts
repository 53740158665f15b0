import { issueCertificate, type CertificatePair } from '../../../../base/certificate.ts';

/** Hosts whose certificates are kept. */
const keptMax = 1024;
/** Clients refuse certificates that hold for longer than about a year. */
const certificateDays = 90;
/** After this time a kept one is made anew. */
const keptMs = 24 * 3_600_000;

/** The certificates by the installation's authority that we show in a host's place; each takes 0.2 ms to make. */
export function createHostCertificates(authority: CertificatePair): (host: string) => CertificatePair {
  const kept = new Map<string, { pair: CertificatePair; madeAt: number }>();
  return host => {
    const known = kept.get(host);
    kept.delete(host);
    const entry = known && Date.now() - known.madeAt < keptMs ? known : { pair: issueCertificate(authority, [host], certificateDays), madeAt: Date.now() };
    kept.set(host, entry); // the ones used last are at the end
    const [oldest] = kept.keys();
    if (kept.size > keptMax && oldest !== undefined) kept.delete(oldest);
    return entry.pair;
  };
}
