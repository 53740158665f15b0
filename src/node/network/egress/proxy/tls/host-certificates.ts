import { LRUCache } from 'lru-cache';
import { issueCertificate, type CertificatePair } from '../../../../../base/crypto/certificate.ts';

/** Hosts whose certificates are kept. */
const keptMax = 1024;
/** Clients refuse certificates that hold for longer than about a year. */
const certificateDays = 90;
/** After this time a kept one is made anew. */
const keptMs = 24 * 3_600_000;

/** The certificates by the installation's authority that we show in a host's place; each takes 0.2 ms to make. */
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
