import type { Log } from '../../base/log.ts';
import type { TrafficCounters } from '../../protocol/node.ts';
import type { Running } from '../context.ts';
import type { RunningRecord } from '../sandbox/record.ts';
import { followAgent, type Follower } from './follow-agent.ts';
import { openLogStore, type LogStore } from './log-store.ts';
import { secretsOf } from './policy-secrets.ts';

/** Denied connections of one sandbox that are written down: at once, and then in each second. */
const denialsMax = 50;
const denialsPerSecond = 5;

/** What happened in and with the sandboxes of a node. */
export type SandboxLogs = Pick<LogStore, 'note'> & {
  /** As the store's, and what the agent has told up to now is in it. */
  read: LogStore['read'];
  /** Takes over what the sandbox's agent tells from now on. `createdMs`: see `Followed`. */
  follow(running: Running, createdMs?: number): void;
  /** Somebody has come to the sandbox: its agent is listened to again. */
  wake(sandboxId: string): void;
  /** Resolves when what its agent has to tell now is kept, or it did not answer soon. Before its processes are ended. */
  catchUp(sandboxId: string): Promise<void>;
  /** Takes what the agent has told, and leaves the sandbox alone. Before its processes are ended or frozen for good. */
  leave(sandboxId: string): Promise<void>;
  /** Takes note of a connection that was refused. Of many, a sample. */
  denied(sandboxId: string, denial: { host: string; port: number; rule: string }): void;
  /** Takes note of what went over the network of a sandbox that ends, if anything did. */
  traffic(sandboxId: string, counters: TrafficCounters): void;
  close(): Promise<void>;
};

/** Worked out once for each policy that a sandbox has had. */
function secretsOfPolicy(record: RunningRecord): () => readonly string[] {
  let [policy, secrets] = [record.network, secretsOf(record.network)];
  return () => {
    if (policy !== record.network) [policy, secrets] = [record.network, secretsOf(record.network)];
    return secrets;
  };
}

export function openSandboxLogs(options: { directory: string; bytesMax: number; log: Log }): SandboxLogs {
  const store = openLogStore(options);
  const followers = new Map<string, Follower>();
  const denials = new Map<string, { left: number; atMs: number; dropped: number }>();
  const leave = async (sandboxId: string) => {
    const follower = followers.get(sandboxId);
    followers.delete(sandboxId);
    denials.delete(sandboxId);
    await follower?.stop();
  };
  return {
    note: store.note,
    async read(request) {
      await followers.get(request.sandboxId)?.catchUp();
      return store.read(request);
    },
    wake: sandboxId => followers.get(sandboxId)?.wake(),
    catchUp: async sandboxId => followers.get(sandboxId)?.catchUp(),
    follow({ record, namespace }, createdMs) {
      const { sandboxId, controlToken } = record;
      void leave(sandboxId);
      followers.set(sandboxId, followAgent({ sandboxId, namespace, controlToken, createdMs, secrets: secretsOfPolicy(record) }, { store, log: options.log }));
    },
    leave,
    denied(sandboxId, { host, port, rule }) {
      const nowMs = performance.now();
      const budget = denials.get(sandboxId) ?? { left: denialsMax, atMs: nowMs, dropped: 0 };
      denials.set(sandboxId, budget);
      budget.left = Math.min(denialsMax, budget.left + ((nowMs - budget.atMs) / 1000) * denialsPerSecond);
      budget.atMs = nowMs;
      if (budget.left < 1) return void budget.dropped++;
      budget.left--;
      const more = budget.dropped > 0 ? ` (and ${budget.dropped} more that are not in the log)` : '';
      budget.dropped = 0;
      store.note(sandboxId, 'warn', 'network', `denied: host ${host} port ${port} by rule ${rule}${more}`, { event: 'denied', host, port: String(port), rule });
    },
    traffic(sandboxId, { bytesOut, bytesIn, denied }) {
      if (bytesOut + bytesIn + denied === 0) return;
      const fields = { event: 'traffic', bytesOut: String(bytesOut), bytesIn: String(bytesIn), denied: String(denied) };
      store.note(sandboxId, 'info', 'network', `${bytesOut} bytes sent, ${bytesIn} received, ${denied} times refused`, fields);
    },
    async close() {
      await Promise.all([...followers.keys()].map(leave));
      await store.close();
    },
  };
}
