import { AtollError } from '../../../base/error.ts';
import type { SandboxRecord } from '../record.ts';

/** The code by which clients recognise the refusal. */
export const agentUnresponsive = 'sandbox_snapshot_guest_agent_unresponsive';

/** Refuses to restore memory (`conflict`) that contains an agent that does not answer. */
export function requireResponsiveAgent(paused: SandboxRecord, memory: boolean): void {
  if (!memory || !paused.agentUnresponsive) return;
  throw new AtollError(
    'conflict',
    `Sandbox "${paused.sandboxId}" stays paused: its agent did not answer when its memory was kept, and would not ` +
      'now. With memory: false it boots from its files',
    { detail: agentUnresponsive },
  );
}
