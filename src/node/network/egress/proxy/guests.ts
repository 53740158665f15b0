import type { EgressPolicy } from '../../../../protocol/network.ts';
import { slotOf, type Slot } from '../../../layout.ts';
import type { Denial, FromProxy } from '../messages.ts';
import { compilePolicy, type CompiledPolicy } from '../policy.ts';
import { createBucket, type Bucket } from './bucket.ts';
import type { Holder } from './descriptors.ts';
import type { Share, Turns } from './turns.ts';

/** Connections of one sandbox at a time. */
export const connectionsMax = 1024;
/** Questions of one sandbox for names that are passed on: each is a connection of the host's to a name server. */
export const questions = { perSecond: 100, burst: 1000 } as const;
/** Denials of one sandbox that are told in full in one report. */
const sampleMax = 10;
const reportIntervalMs = 250;

/** A connection of a sandbox that the proxy carries. */
export type Carried = {
  /** Whether it may go on under the policy. */
  mayStay(policy: CompiledPolicy): boolean;
  cut(): void;
};

/** A sandbox as the proxy knows it. It holds descriptors of the process. */
export type Guest = Holder & {
  slot: Slot;
  /** The one that is in force at this moment. */
  policy: CompiledPolicy;
  connections: Set<Carried>;
  /** Its connections that ask for names. */
  dnsConnections: number;
  /** Of the process's time. */
  share: Share;
  /** Names that it is looking up at this moment. */
  lookups: number;
  questions: Bucket;
  deny(denial: Denial): void;
};

export type Guests = {
  /** The sandbox that an address stands for. */
  at(address: string): Guest | undefined;
  set(number: number, policy: EgressPolicy): void;
  remove(number: number): void;
};

/** The sandboxes that the proxy serves. Denials are reported through `send`, a few times a second at most. */
export function createGuests(installation: number, turns: Turns, send: (message: FromProxy) => void): Guests {
  const byAddress = new Map<string, Guest>();
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
      const guest = byAddress.get(slot.address);
      if (!guest) {
        const fresh = { held: 0, connections: new Set<Carried>(), dnsConnections: 0, lookups: 0, questions: createBucket(questions), share: turns.share() };
        byAddress.set(slot.address, { ...fresh, slot, policy, deny: denial => deny(number, denial) });
        return;
      }
      const rerouted = JSON.stringify(guest.policy.source.egressProxy) !== JSON.stringify(source.egressProxy);
      guest.policy = policy;
      for (const connection of [...guest.connections]) if (rerouted || !connection.mayStay(policy)) connection.cut();
    },
    remove(number) {
      const { address } = slotOf(installation, number);
      const guest = byAddress.get(address);
      byAddress.delete(address);
      for (const connection of [...(guest?.connections ?? [])]) connection.cut();
    },
  };
}
