import { sha256Hex } from '../../../base/crypto/secret.ts';

/** Represents one metadata pair in `sandbox_labels`. JSON keeps `a=b`+`c` and `a`+`b=c` apart. */
export function pairDigest(key: string, value: string): string {
  return sha256Hex(JSON.stringify([key, value]));
}
