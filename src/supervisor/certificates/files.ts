import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { AtollError, messageOf } from '../../base/error.ts';
import type { CertificatePair } from '../../base/crypto/certificate.ts';
import type { Log } from '../../base/telemetry/log.ts';

/** Paths of a certificate chain and its key, PEM. */
type CertificateFiles = { readonly certFile: string; readonly keyFile: string };

/** The certificate for new connections, which can change. */
export type CertificateSource = {
  readonly current: CertificatePair;
  /** Checks whether the files have changed. */
  refresh(): void;
};

/**
 * A certificate (with its chain) and its key from PEM files, which are read again when one changes. Files that don't
 * fit each other, as in the middle of a renewal, are ignored until they do. Errors: `invalid` when they can't be used
 * at the start.
 */
export function certificateFromFiles(files: CertificateFiles, log: Log): CertificateSource {
  let seen = stampOf(files);
  let current = read(files);
  return {
    get current() {
      return current;
    },
    refresh() {
      const stamp = stampOf(files);
      if (stamp === seen) return;
      seen = stamp;
      try {
        current = read(files);
        log.info('certificate reloaded', { certFile: files.certFile });
      } catch (error) {
        log.warn("the changed certificate can't be used, the earlier one stays", {
          certFile: files.certFile,
          error: messageOf(error),
        });
      }
    },
  };
}

/** Changes whenever a file does, also when a link is pointed at another file. */
function stampOf({ certFile, keyFile }: CertificateFiles): string {
  const stamps = [certFile, keyFile].map(path => {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat === undefined ? 'none' : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeMs}`;
  });
  return stamps.join(' ');
}

function read({ certFile, keyFile }: CertificateFiles): CertificatePair {
  try {
    const pair = { certificate: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
    // Throws unless the two are a pair.
    createSecureContext({ cert: pair.certificate, key: pair.key });
    return pair;
  } catch (cause) {
    throw new AtollError(
      'invalid',
      `The certificate ${certFile} with the key ${keyFile} can't be used (${messageOf(cause)}): set ` +
        'ATOLL_TLS_CERT and ATOLL_TLS_KEY to PEM files of one pair.',
      { cause },
    );
  }
}
