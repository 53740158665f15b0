import { messageOf } from '../../../base/error.ts';
import type { ExecutionRef, SandboxNetwork } from '../../../protocol/node.ts';
import type { SandboxLogs } from '../../logs/sandbox-logs.ts';
import type { Egress } from '../../network/egress/egress.ts';
import type { Records } from '../records/record-store.ts';
import { trustAuthorities } from '../start/agent-settings.ts';
import type { Running } from '../state/sandbox-state.ts';
import type { Sandboxes } from '../state/sandboxes.ts';

/** What replacing network policies needs. */
export type UpdateParts = {
  sandboxes: Sandboxes;
  records: Pick<Records, 'write'>;
  egress: Pick<Egress, 'trusted' | 'update'>;
  logs: Pick<SandboxLogs, 'write' | 'catchUp'>;
};

/** Replaces the policy of what may leave a sandbox; one update after the other. Errors: `not_found`, `internal`. */
export async function updateNetwork(parts: UpdateParts, target: ExecutionRef, network: SandboxNetwork): Promise<void> {
  const { sandboxes } = parts;
  sandboxes.requireProcesses(target);
  await sandboxes.inTurn(target.sandboxId, () => replace(parts, sandboxes.requireRunning(target), network));
}

/**
 * The record goes first: a restart in between must not bring the old policy back. After a restart every sandbox gets
 * its policy again, which costs little if nothing of it can be missing.
 */
async function replace(parts: UpdateParts, running: Running, network: SandboxNetwork): Promise<void> {
  const { sandboxes, records, egress, logs } = parts;
  const { sandboxId, processes, policyInForce } = running;
  if (policyInForce && Bun.deepEquals(policyInForce, network)) return void (await trust(parts, running, network));
  // What programs have printed so far is searched for the secrets of this policy, which the next one may lack.
  await logs.catchUp(sandboxId);
  const record = { ...running.record, network };
  // Until all of this is done, it is not certain which policy is in force.
  const updating = sandboxes.transition(running, { ...running, record, policyInForce: null });
  await records.write(record);
  const isTrusted = await trust(parts, updating, network);
  await egress.update({ sandboxId, slot: processes.slot, namespace: processes.namespace }, network);
  sandboxes.transition(updating, { ...updating, policyInForce: isTrusted ? network : null });
  logs.write(sandboxId, 'info', 'network', 'what may leave the sandbox was replaced', { event: 'policy' });
}

/**
 * Makes programs of the sandbox trust the authorities that its policy needs. The agent does this: if it does not
 * answer, the policy takes effect all the same. False: the agent has to be told again.
 */
async function trust({ egress, logs }: UpdateParts, running: Running, network: SandboxNetwork): Promise<boolean> {
  const { sandboxId, processes, record } = running;
  const authorities = egress.trusted(network);
  if (authorities === undefined) return true;
  try {
    await trustAuthorities(processes.namespace, record.controlToken, authorities);
    return true;
  } catch (error) {
    const text = `programs may not trust certificates of the platform: ${messageOf(error)}`;
    logs.write(sandboxId, 'warn', 'network', text, { event: 'policy' });
    return false;
  }
}
