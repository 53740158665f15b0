import { existsSync } from 'node:fs';
import { apiKeyFile, machineIdentityFile } from '../../api/installation/data-directory.ts';
import { factsFile } from '../../api/installation/facts.ts';
import { AtollError } from '../../base/error.ts';
import type { ServiceRole } from '../../cli/operator/install.ts';

/** What each role is called, and what starts it. */
export const roleNouns: Readonly<Record<ServiceRole, string>> = {
  platform: 'machine alone',
  control: 'control process',
  node: 'machine of a cluster',
};
const commands: Readonly<Record<ServiceRole, string>> = { platform: 'up', control: 'control', node: 'node' };

/**
 * Refuses a data directory that has another role: a machine of a cluster has no state, and control no sandboxes, so
 * that what another role left there would be lost or taken for its own. Errors: `precondition`.
 */
export function requireRole(dataDir: string, role: ServiceRole): void {
  const has = roleOf(dataDir);
  // Control and a first start that was cut off have the same files: its database says which it is.
  if (has === undefined || has === role || (has === 'control' && role === 'platform')) return;
  throw new AtollError(
    'precondition',
    `${dataDir} is the data directory of a ${roleNouns[has]}, which \`atoll ${commands[has]}\` starts. Set ` +
      `ATOLL_DATA_DIR to one for a ${roleNouns[role]}. Nothing was changed.`,
  );
}

/** The role of a data directory by what is in it; undefined for a new one. */
function roleOf(dataDir: string): ServiceRole | undefined {
  if (existsSync(machineIdentityFile(dataDir))) return 'node';
  if (existsSync(factsFile(dataDir))) return 'platform';
  return existsSync(apiKeyFile(dataDir)) ? 'control' : undefined;
}
