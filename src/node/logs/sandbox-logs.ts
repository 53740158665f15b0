import type { Log } from '../../base/telemetry/log.ts';
import type { SandboxNetwork } from '../../protocol/node.ts';
import type { TrafficCounters } from '../../protocol/node-usage.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { LogFollower } from '../agent-client/follow-log.ts';
import { agentSink } from './agent-sink.ts';
import { openLogStore, type LogStore } from './log-store.ts';
import { secretsOf } from './policy-secrets.ts';

/** Denied connections of one sandbox that are written down: at once, and then in each second. */
const denialsMax = 50;
const denialsPerSecond = 5;

/** A running sandbox whose agent is listened to. */
type LoggedSandbox = {
  sandboxId: string;
  namespace: NetworkNamespace;
  /** Proves the platform to its agent. */
  controlToken: string;
  /** Its policy now: what that proves itself with must not be in a log. */
  network(): SandboxNetwork;
};

/** What happened in and with the sandboxes of a node. */
export type SandboxLogs = Pick<LogStore, 'write'> & {
  /** As the store's, and what the agent has reported up to now is in it. */
  read: LogStore['read'];
  /** Takes over what the sandbox's agent reports from now on. `createdMs`: see `FollowedAgent`. */
  follow(sandbox: LoggedSandbox, createdMs?: number): void;
  /** Somebody has come to the sandbox: its agent is listened to again. */
  wake(sandboxId: string): void;
  /**
   * Resolves when what its agent has to report now is kept, or it did not answer soon. Before its processes are ended.
   */
  catchUp(sandboxId: string): Promise<void>;
  /** Takes what the agent has reported, and leaves the sandbox alone. Before its processes end or freeze for good. */
  leave(sandboxId: string): Promise<void>;
  /** Records a connection that was refused. Of many, a sample. */
  denied(sandboxId: string, denial: { host: string; port: number; rule: string }): void;
  /** Records what went over the network of a sandbox that ends, if anything did. */
  traffic(sandboxId: string, counters: TrafficCounters): void;
  close(): Promise<void>;
};

/** Worked out once for each policy that a sandbox has had. */
function secretsOfPolicy(network: () => SandboxNetwork): () => readonly string[] {
  let policy = network();
  let secrets = secretsOf(policy);
  return () => {
    const now = network();
    if (policy !== now) [policy, secrets] = [now, secretsOf(now)];
    return secrets;
  };
}

/** Opens the logs in `directory`. `bytesMax` bounds all of them together: the oldest entries go first. */
export function openSandboxLogs(options: { directory: string; bytesMax: number; log: Log }): SandboxLogs {
  const store = openLogStore(options);
  const followers = new Map<string, LogFollower>();
  const denials = new Map<string, { left: number; atMs: number; dropped: number }>();
  const leave = async (sandboxId: string) => {
    const follower = followers.get(sandboxId);
    followers.delete(sandboxId);
    denials.delete(sandboxId);
    await follower?.stop();
  };
  return {
    write: store.write,
    async read(request) {
      await followers.get(request.sandboxId)?.catchUp();
      return store.read(request);
    },
    wake: sandboxId => followers.get(sandboxId)?.wake(),
    catchUp: async sandboxId => followers.get(sandboxId)?.catchUp(),
    follow({ sandboxId, namespace, controlToken, network }, createdMs) {
      void leave(sandboxId);
      followers.set(
        sandboxId,
        new LogFollower(
          { sandboxId, namespace, controlToken, createdMs },
          agentSink(store, sandboxId, secretsOfPolicy(network)),
          options.log,
        ),
      );
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
      await Promise.all([...followers.keys()].map(leave));
      await store.close();
    },
  };
}
