import { createPrivateKey, X509Certificate } from 'node:crypto';
import { newKey } from '../base/crypto/certificate.ts';
import { AtollError } from '../base/error.ts';

/** As many control processes as may ask at a time; of more, the first one has to ask again. */
const pendingMax = 16;

/**
 * Private keys for which certificates were asked. Two control processes may renew a machine's at the same moment: the
 * certificate that comes says whose key it is of.
 */
export class PendingKeys {
  readonly #keys: string[] = [];

  /** Makes a pair, keeps its private key, and answers the public one (PEM). */
  make(): string {
    const { key, publicKey } = newKey();
    this.#keys.push(key);
    if (this.#keys.length > pendingMax) this.#keys.shift();
    return publicKey;
  }

  /** The private key (PEM) of a certificate (PEM). Errors: `precondition` for one that was not asked for here. */
  keyOf(certificate: string): string {
    const shown = new X509Certificate(certificate);
    const key = this.#keys.find(pending => shown.checkPrivateKey(createPrivateKey(pending)));
    if (key === undefined) throw new AtollError('precondition', 'No such certificate was asked for');
    return key;
  }

  /** Forgets all: a certificate has come. */
  clear(): void {
    this.#keys.length = 0;
  }
}
