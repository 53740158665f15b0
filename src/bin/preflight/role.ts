import { existsSync } from 'node:fs';
import { apiKeyFile, machineIdentityFile } from '../../api/installation/data-directory.ts';
import { factsFile } from '../../api/installation/facts.ts';
import { AtollError } from '../../base/error.ts';
import type { ServiceRole } from '../../cli/operator/install.ts';

/** The name of each role, and the command that starts it. */
export const roleNouns: Readonly<Record<ServiceRole, string>> = {
  platform: 'machine alone',
  control: 'control process',
  node: 'machine of a cluster',
};
const commands: Readonly<Record<ServiceRole, string>> = { platform: 'up', control: 'control', node: 'node' };

/**
 * Refuses a data directory that has another role. A machine of a cluster has no state and control has no sandboxes, so
 * the data of another role would be lost or mistaken for its own. Errors: `precondition`.
 */
export function requireRole(dataDir: string, role: ServiceRole): void {
  const has = roleOf(dataDir);
  // Control and an interrupted first start have the same files: the database tells which it is.
  if (has === undefined || has === role || (has === 'control' && role === 'platform')) return;
  throw new AtollError(
    'precondition',
    `${dataDir} is the data directory of a ${roleNouns[has]}, which \`atoll ${commands[has]}\` starts. Set ` +
      `ATOLL_DATA_DIR to one for a ${roleNouns[role]}. Nothing was changed.`,
  );
}

/** The role of a data directory, judged by its content; undefined for a new one. */
function roleOf(dataDir: string): ServiceRole | undefined {
  if (existsSync(machineIdentityFile(dataDir))) return 'node';
  if (existsSync(factsFile(dataDir))) return 'platform';
  return existsSync(apiKeyFile(dataDir)) ? 'control' : undefined;
}
