import type { StartSettings } from '../../../protocol/node.ts';
import { egressPolicyFor } from './network/egress-policy.ts';
import { tokensOf } from './tokens.ts';
import type { SandboxRecord } from '../record.ts';

/**
 * What the node is told at each start of a sandbox: its record, with some members in another form for the node. The
 * wire takes only those members that the message's schema names.
 */
export async function startSettings(
  deps: Parameters<typeof egressPolicyFor>[0],
  sandbox: SandboxRecord,
): Promise<Omit<SandboxRecord, keyof StartSettings> & StartSettings> {
  return {
    ...sandbox,
    network: await egressPolicyFor(deps, sandbox),
    envVars: globalEnvironment(sandbox),
    accessToken: tokensOf(deps.seed, sandbox).accessToken,
  };
}

/** The environment of every process in the sandbox. A caller can't override the variables that identify the sandbox. */
function globalEnvironment(sandbox: SandboxRecord): Record<string, string> {
  return {
    ...sandbox.envVars,
    E2B_SANDBOX: 'true',
    E2B_SANDBOX_ID: sandbox.sandboxId,
    E2B_TEMPLATE_ID: sandbox.templateId,
  };
}
