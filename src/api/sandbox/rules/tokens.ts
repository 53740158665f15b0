import { deriveToken } from '../../../base/crypto/secret.ts';
import type { CreatedSandbox } from '../record.ts';

/**
 * The tokens of a sandbox. They are derived and not stored, so they stay the same over pause and resume, and a reader
 * of the database does not have them.
 */
export function tokensOf(
  seed: Uint8Array,
  sandbox: Pick<CreatedSandbox, 'sandboxId' | 'secure' | 'network'>,
): { accessToken: string | null; trafficToken: string | null } {
  const isPrivate = sandbox.network?.allowPublicTraffic === false;
  return {
    accessToken: sandbox.secure ? deriveToken(seed, sandbox.sandboxId) : null,
    trafficToken: isPrivate ? deriveToken(seed, `sandbox-traffic-${sandbox.sandboxId}`) : null,
  };
}
