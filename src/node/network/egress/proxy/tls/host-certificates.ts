import { LRUCache } from 'lru-cache';
import { issueCertificate, type CertificatePair } from '../../../../../base/crypto/certificate.ts';

/** For how many hosts certificates are kept. */
const keptMax = 1024;
/** Clients refuse certificates that are valid for longer than about a year. */
const certificateDays = 90;
/** After this time a kept certificate is made anew. */
const keptMs = 24 * 3_600_000;

/**
 * Makes the certificates that the proxy shows in place of a host's, signed by the installation's authority; each takes
 * 0.2 ms.
 */
export function createHostCertificates(authority: CertificatePair): (host: string) => CertificatePair {
  const kept = new LRUCache<string, CertificatePair>({ max: keptMax, ttl: keptMs });
  return host => {
    const known = kept.get(host);
    if (known) return known;
    const pair = issueCertificate(authority, [host], certificateDays);
    kept.set(host, pair);
    return pair;
  };
}
