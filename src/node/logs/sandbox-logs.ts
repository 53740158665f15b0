import { LRUCache } from 'lru-cache';
import type { Log } from '../../base/telemetry/log.ts';
import type { SandboxNetwork } from '../../protocol/node.ts';
import type { TrafficCounters } from '../../protocol/node-usage.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { LogFollower } from '../agent-client/follow-log.ts';
import { agentSink } from './agent-sink.ts';
import { openLogStore, type LogStore } from './log-store.ts';
import { keepSecrets } from './policy-secrets.ts';

/** How many denied connections of one sandbox are logged: at once, and then in each second. */
const denialsMax = 50;
const denialsPerSecond = 5;
/** How many sandboxes have a count of denials; others begin with the full allowance. */
const deniedSandboxesMax = 10_000;

/** A running sandbox whose agent is followed. */
type LoggedSandbox = {
  sandboxId: string;
  namespace: NetworkNamespace;
  /** Proves the platform to its agent. */
  controlToken: string;
  /** Its current policy: the secrets in it must not be in a log. */
  network(): SandboxNetwork;
};

/** What happened in and with the sandboxes of a node. */
export type SandboxLogs = Pick<LogStore, 'write'> & {
  /** Like the store's, and includes what the agent has reported up to now. */
  read: LogStore['read'];
  /** Takes over what the sandbox's agent reports from now on. `createdMs`: see `FollowedAgent`. */
  follow(sandbox: LoggedSandbox, createdMs?: number): void;
  /** Called when somebody uses the sandbox: its agent is listened to again. */
  wake(sandboxId: string): void;
  /**
   * Resolves when what its agent has to report now is kept, or it did not answer soon. Called before its processes are
   * ended, and before its policy is replaced: entries that come later show no secret of the former policy.
   */
  catchUp(sandboxId: string): Promise<void>;
  /** Takes what the agent has reported, and stops following it. Called before its processes end or freeze for good. */
  leave(sandboxId: string): Promise<void>;
  /** Records a connection that was refused; of many, only a sample. */
  denied(sandboxId: string, denial: { host: string; port: number; rule: string }): void;
  /** Records the traffic of a sandbox that ends, if there was any. */
  traffic(sandboxId: string, counters: TrafficCounters): void;
  close(): Promise<void>;
};

/** Opens the logs in `directory`. `bytesMax` bounds all of them together: the oldest entries are deleted first. */
export function openSandboxLogs(options: { directory: string; bytesMax: number; log: Log }): SandboxLogs {
  const store = openLogStore(options);
  const followed = new Map<string, { follower: LogFollower; secrets: () => readonly string[] }>();
  // The last refusals of a sandbox are reported after its end.
  const denials = new LRUCache<string, { left: number; atMs: number; dropped: number }>({ max: deniedSandboxesMax });
  const leave = async (sandboxId: string) => {
    const left = followed.get(sandboxId);
    followed.delete(sandboxId);
    denials.delete(sandboxId);
    await left?.follower.stop();
  };
  return {
    write: store.write,
    async read(request) {
      await followed.get(request.sandboxId)?.follower.catchUp();
      return store.read(request);
    },
    wake: sandboxId => followed.get(sandboxId)?.follower.wake(),
    async catchUp(sandboxId) {
      const one = followed.get(sandboxId);
      // Entries on their way may show secrets that only the policy so far contains.
      one?.secrets();
      await one?.follower.complete();
    },
    follow({ sandboxId, namespace, controlToken, network }, createdMs) {
      void leave(sandboxId);
      const secrets = keepSecrets(network);
      const follower = new LogFollower(
        { sandboxId, namespace, controlToken, createdMs },
        agentSink(store, sandboxId, secrets),
        options.log,
      );
      followed.set(sandboxId, { follower, secrets });
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
      store.write(sandboxId, 'warn', 'network', `denied: host ${host} port ${port} by rule ${rule}${more}`, {
        event: 'denied',
        host,
        port: String(port),
        rule,
      });
    },
    traffic(sandboxId, { bytesOut, bytesIn, denied }) {
      if (bytesOut + bytesIn + denied === 0) return;
      const fields = { event: 'traffic', bytesOut: String(bytesOut), bytesIn: String(bytesIn), denied: String(denied) };
      store.write(
        sandboxId,
        'info',
        'network',
        `${bytesOut} bytes sent, ${bytesIn} received, ${denied} times refused`,
        fields,
      );
    },
    async close() {
      await Promise.all([...followed.keys()].map(leave));
      await store.close();
    },
  };
}
