import type { CertificatePair } from '../../base/crypto/certificate.ts';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { CertificateSource } from './files.ts';

/** Interval of the checks for a new certificate, milliseconds. */
const checkMs = 5_000;

/**
 * Calls `onChange` with every new certificate, until it is disposed of. While the source can't be read, the earlier
 * certificate stays.
 */
export function watchCertificate(
  source: CertificateSource,
  onChange: (pair: CertificatePair) => void,
  log: Log,
): Disposable {
  let known = source.current;
  const timer = setInterval(() => {
    try {
      source.refresh();
    } catch (error) {
      log.warn("the certificate can't be looked at, the earlier one stays", { error: messageOf(error) });
    }
    if (source.current === known) return;
    known = source.current;
    onChange(known);
  }, checkMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
