import { writeFileSync } from 'node:fs';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { AgentInit } from '../../protocol/agent.ts';
import { nameHost } from './host-name.ts';
import { writeSmallFile } from './small-file.ts';
import { trustCertificates } from './trust-store.ts';

/** Directory in which programs find the facts of their sandbox. */
const factsDirectory = '/run/e2b';

/**
 * Writes the sandbox's facts, host name and certificates into its root file system, and mixes in new entropy. A failure
 * is only logged: an image may be read-only or broken anywhere, and is still a sandbox.
 */
export function configureRootfs(init: AgentInit, envVars: Record<string, string>, log: Log): void {
  const attempt = (what: string, step: () => void) => {
    try {
      step();
    } catch (error) {
      log.warn(`could not write ${what}`, { error: messageOf(error) });
    }
  };
  const facts = {
    E2B_SANDBOX: envVars['E2B_SANDBOX'] ?? 'true',
    E2B_SANDBOX_ID: envVars['E2B_SANDBOX_ID'],
    E2B_TEMPLATE_ID: envVars['E2B_TEMPLATE_ID'],
  };
  for (const [name, value] of Object.entries(facts))
    if (value !== undefined) attempt(name, () => writeSmallFile(`${factsDirectory}/.${name}`, value));
  const { hostname, caBundle, entropy } = init;
  if (hostname) attempt('the host name', () => nameHost(hostname));
  if (caBundle) attempt('the certificates', () => trustCertificates(caBundle));
  // Mixed into the kernel's pool, so that two forks of one checkpoint draw different numbers from here on.
  if (entropy) attempt('entropy', () => writeFileSync('/dev/urandom', Buffer.from(entropy, 'base64')));
}
