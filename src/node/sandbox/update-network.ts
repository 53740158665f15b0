import { AtollError } from '../../base/error.ts';
import type { ExecutionRef, SandboxNetwork } from '../../protocol/node.ts';
import { initAgent } from '../agent-call.ts';
import type { NodeContext, Running } from '../context.ts';
import { slotOf } from '../layout.ts';
import { inTurn } from './in-turn.ts';

/** The execution, where it runs here and is not being removed. Errors: `not_found`. */
export function runningOf(node: NodeContext, target: ExecutionRef): Running {
  const running = node.running.get(target.sandboxId);
  if (running?.record.executionId === target.executionId && !running.removal) return running;
  throw new AtollError('not_found', `sandbox ${target.sandboxId} does not run on this node`);
}

/** Replaces what may leave a sandbox; one update after the other. */
export async function updateNetwork(node: NodeContext, target: ExecutionRef, network: SandboxNetwork): Promise<void> {
  await inTurn(runningOf(node, target), () => replace(node, runningOf(node, target), network));
}

/**
 * The record goes first: a restart in between must not bring the old policy back. After a restart every sandbox is told its
 * policy again; where nothing of it can be missing, that costs nothing.
 */
async function replace(node: NodeContext, running: Running, network: SandboxNetwork): Promise<void> {
  const { record, namespace } = running;
  const caBundle = node.egress.trusted(network);
  if (caBundle === undefined && running.policyInForce && Bun.deepEquals(running.policyInForce, network)) return;
  delete running.policyInForce;
  const slot = slotOf(node.layout.installation, record.slot);
  record.network = network;
  await node.records.write(record);
  if (caBundle !== undefined) await initAgent(namespace, record.controlToken, { caBundle });
  await node.egress.update({ sandboxId: record.sandboxId, slot, namespace }, network);
  running.policyInForce = network;
  node.logs.note(record.sandboxId, 'info', 'network', 'what may leave the sandbox was replaced', { event: 'policy' });
}
