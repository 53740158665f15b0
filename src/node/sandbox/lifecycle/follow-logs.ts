import type { SandboxLogs } from '../../logs/sandbox-logs.ts';
import type { Running } from '../state/sandbox-state.ts';
import type { Sandboxes } from '../state/sandboxes.ts';

/** What following logs needs. */
export type FollowParts = { sandboxes: Sandboxes; logs: Pick<SandboxLogs, 'follow'> };

/** Puts what the agent of a running sandbox reports into the sandbox's log. `createdMs`: see `SandboxLogs.follow`. */
export function followLogs({ sandboxes, logs }: FollowParts, running: Running, createdMs?: number): void {
  const { sandboxId, record, processes } = running;
  let latest = record.network;
  logs.follow(
    {
      sandboxId,
      controlToken: record.controlToken,
      namespace: processes.namespace,
      network() {
        const state = sandboxes.get(sandboxId);
        if (state && state.kind !== 'starting' && state.record) latest = state.record.network;
        return latest;
      },
    },
    createdMs,
  );
}
