import { LRUCache } from 'lru-cache';
import type { Log } from '../../base/telemetry/log.ts';
import type { SandboxNetwork } from '../../protocol/node.ts';
import type { TrafficCounters } from '../../protocol/node-usage.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { LogFollower } from '../agent-client/follow-log.ts';
import { agentSink } from './agent-sink.ts';
import { openLogStore, type LogStore } from './log-store.ts';
import { keepSecrets } from './policy-secrets.ts';

/** Denied connections of one sandbox that are written down: at once, and then in each second. */
const denialsMax = 50;
const denialsPerSecond = 5;
/** Sandboxes whose denials are counted; what is refused to others begins with all that may be written. */
const deniedSandboxesMax = 10_000;

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
   * Resolves when what its agent has to report now is kept, or it did not answer soon. Before its processes are ended,
   * and before its policy is replaced: whatever comes later shows no secret of the former one.
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

/** Opens the logs in `directory`. `bytesMax` bounds all of them together: the oldest entries go first. */
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
      // What is on its way may show what only the policy up to now knows of.
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
