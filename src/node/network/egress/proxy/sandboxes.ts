import type { EgressPolicy } from '../../../../protocol/network/network.ts';
import { slotOf, type Slot } from '../../../layout.ts';
import type { Denial, FromProxy } from '../proxies/messages.ts';
import { compilePolicy, type CompiledPolicy } from '../../../../protocol/network/egress-policy.ts';
import { createBucket, type Bucket } from './shares/bucket.ts';
import type { Holder } from './shares/descriptors.ts';
import type { Share, Turns } from './shares/turns.ts';

/** Connections of one sandbox at a time. */
export const connectionsMax = 1024;
/** Questions of one sandbox for names that are passed on: each makes the host connect to a name server. */
const questions = { perSecond: 100, burst: 1000 } as const;
/** How many denials of one sandbox a report lists in full. */
const sampleMax = 10;
const reportIntervalMs = 250;

/** A connection of a sandbox that the proxy carries. */
export type Carried = {
  /** Whether it may continue under the policy. */
  mayStay(policy: CompiledPolicy): boolean;
  cut(): void;
};

/** A sandbox as the proxy knows it. It holds descriptors of the process. */
export type ProxiedSandbox = Holder & {
  slot: Slot;
  /** The policy that is in force at this moment. */
  policy: CompiledPolicy;
  connections: Set<Carried>;
  /** How many of its connections ask for names. */
  dnsConnections: number;
  /** Its share of the process's time. */
  share: Share;
  /** How many names it is looking up at this moment. */
  lookups: number;
  questions: Bucket;
  deny(denial: Denial): void;
};

/** The sandboxes whose connections this proxy carries. */
export type ProxiedSandboxes = {
  /** The sandbox that an address stands for. */
  at(address: string): ProxiedSandbox | undefined;
  set(number: number, policy: EgressPolicy): void;
  remove(number: number): void;
};

/** The sandboxes that the proxy serves. Denials are reported through `send`, at most a few times a second. */
export function createProxiedSandboxes(
  installation: number,
  turns: Turns,
  send: (message: FromProxy) => void,
): ProxiedSandboxes {
  const byAddress = new Map<string, ProxiedSandbox>();
  const denied = new Map<number, { count: number; sample: Denial[] }>();

  const report = () => {
    for (const [slot, denials] of denied) send({ kind: 'denied', slot, ...denials });
    denied.clear();
  };

  const deny = (number: number, denial: Denial) => {
    if (denied.size === 0) setTimeout(report, reportIntervalMs);
    const denials = denied.get(number) ?? { count: 0, sample: [] };
    denials.count++;
    if (denials.sample.length < sampleMax) denials.sample.push(denial);
    denied.set(number, denials);
  };

  return {
    at: address => byAddress.get(address),
    set(number, source) {
      const slot = slotOf(installation, number);
      const policy = compilePolicy(source);
      const sandbox = byAddress.get(slot.address);
      if (!sandbox) {
        const fresh = {
          held: 0,
          connections: new Set<Carried>(),
          dnsConnections: 0,
          lookups: 0,
          questions: createBucket(questions),
          share: turns.share(),
        };
        byAddress.set(slot.address, { ...fresh, slot, policy, deny: denial => deny(number, denial) });
        return;
      }
      const rerouted = JSON.stringify(sandbox.policy.source.egressProxy) !== JSON.stringify(source.egressProxy);
      sandbox.policy = policy;
      for (const connection of [...sandbox.connections]) if (rerouted || !connection.mayStay(policy)) connection.cut();
    },
    remove(number) {
      const { address } = slotOf(installation, number);
      const sandbox = byAddress.get(address);
      byAddress.delete(address);
      for (const connection of [...(sandbox?.connections ?? [])]) connection.cut();
    },
  };
}
