import type { ExecutionRef, SandboxNetwork } from '../../../protocol/node.ts';
import type { SandboxLogs } from '../../logs/sandbox-logs.ts';
import type { Egress } from '../../network/egress/egress.ts';
import type { Records } from '../records/record-store.ts';
import { trustAuthorities } from '../start/agent-settings.ts';
import type { Running } from '../state/sandbox-state.ts';
import type { Sandboxes } from '../state/sandboxes.ts';

/** What network policies are replaced with. */
export type UpdateParts = {
  sandboxes: Sandboxes;
  records: Pick<Records, 'write'>;
  egress: Pick<Egress, 'trusted' | 'update'>;
  logs: Pick<SandboxLogs, 'write' | 'catchUp'>;
};

/** Replaces what may leave a sandbox; one update after the other. Errors: `not_found`, `internal`. */
export async function updateNetwork(parts: UpdateParts, target: ExecutionRef, network: SandboxNetwork): Promise<void> {
  const { sandboxes } = parts;
  sandboxes.requireProcesses(target);
  await sandboxes.inTurn(target.sandboxId, () => replace(parts, sandboxes.requireRunning(target), network));
}

/**
 * The record goes first: a restart in between must not bring the old policy back. After a restart every sandbox is told
 * its policy again; where nothing of it can be missing, that costs nothing.
 */
async function replace(parts: UpdateParts, running: Running, network: SandboxNetwork): Promise<void> {
  const { sandboxes, records, egress, logs } = parts;
  const { sandboxId, processes, policyInForce } = running;
  const authorities = egress.trusted(network);
  if (authorities === undefined && policyInForce && Bun.deepEquals(policyInForce, network)) return;
  // What programs have printed up to now is looked through for what this policy has, and the next one may not.
  await logs.catchUp(sandboxId);
  const record = { ...running.record, network };
  // Until all of it is done it is not certain what is in force.
  const updating = sandboxes.transition(running, { ...running, record, policyInForce: null });
  await records.write(record);
  if (authorities !== undefined) await trustAuthorities(processes.namespace, record.controlToken, authorities);
  await egress.update({ sandboxId, slot: processes.slot, namespace: processes.namespace }, network);
  sandboxes.transition(updating, { ...updating, policyInForce: network });
  logs.write(sandboxId, 'info', 'network', 'what may leave the sandbox was replaced', { event: 'policy' });
}
