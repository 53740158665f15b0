import { createPrivateKey, X509Certificate } from 'node:crypto';
import { newKey } from '../base/crypto/certificate.ts';
import { AtollError } from '../base/error.ts';

/** As many as the control processes that may ask at a time; beyond that, the first one has to ask again. */
const pendingMax = 16;

/**
 * Private keys of requested certificates. Two control processes may renew a machine's certificate at the same moment:
 * the certificate that arrives says which key it is for.
 */
export class PendingKeys {
  readonly #keys: string[] = [];

  /** Makes a pair, keeps the private key, and answers the public one (PEM). */
  make(): string {
    const { key, publicKey } = newKey();
    this.#keys.push(key);
    if (this.#keys.length > pendingMax) this.#keys.shift();
    return publicKey;
  }

  /**
   * The private key (PEM) for a certificate (PEM). Errors: `precondition` for a certificate that was not requested
   * here.
   */
  keyOf(certificate: string): string {
    const shown = new X509Certificate(certificate);
    const key = this.#keys.find(pending => shown.checkPrivateKey(createPrivateKey(pending)));
    if (key === undefined) throw new AtollError('precondition', 'No such certificate was asked for');
    return key;
  }

  /** Forgets all keys, once a certificate has come. */
  clear(): void {
    this.#keys.length = 0;
  }
}
