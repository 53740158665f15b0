import type { TrafficCounters } from '../../../protocol/node-usage.ts';
import type { Slot } from '../../layout.ts';
import type { NetworkNamespace } from '../../native/netns.ts';
import { linkBytes } from './link-bytes.ts';
import type { CompiledPolicy } from '../../../protocol/network/egress-policy.ts';

/** A sandbox as the network code sees it. */
export type ConnectedSandbox = { sandboxId: string; slot: Slot; namespace: NetworkNamespace };

/** A sandbox with the policy that is in force for it. */
type KnownSandbox = { readonly sandbox: ConnectedSandbox; readonly policy: CompiledPolicy };

type Known = KnownSandbox & {
  /** The link's count of refused packets when the sandbox got the link. */
  refusedBefore: number;
  /** How many connections the proxy refused. */
  denied: number;
  /**
   * The part of its traffic that is already in the totals, or that the totals leave out. Undefined for a sandbox that
   * ran before this node did, until its first count.
   */
  counted: TrafficCounters | undefined;
};

/** Sandboxes whose way out is controlled, by slot, and the traffic of each since it got its policy. */
export type KnownSandboxes = {
  get(slotNumber: number): KnownSandbox | undefined;
  all(): Iterable<KnownSandbox>;
  /** Adds a sandbox that ran before this node did: its traffic until now is not in the totals. */
  adopt(sandbox: ConnectedSandbox, policy: CompiledPolicy): void;
  /** Records a policy that is in force. The counters of a sandbox that already had one continue. */
  put(sandbox: ConnectedSandbox, policy: CompiledPolicy): void;
  /** False if the slot was not known. */
  remove(slotNumber: number): boolean;
  /** Counts connections that the proxy refused. */
  addDenied(slotNumber: number, count: number): void;
  counters(slot: Slot): TrafficCounters;
  /** The rules count refused packets from zero again. */
  refusalsBeginAnew(): void;
  /** Adds the traffic of all sandboxes to the totals. */
  count(): void;
  /** Adds the traffic of one sandbox to the totals, and answers it; undefined if the sandbox is not known. */
  countOne(slotNumber: number): TrafficCounters | undefined;
  /** Bytes of all sandboxes since the node started. */
  totals(): TrafficCounters;
};

const nothing: TrafficCounters = { bytesOut: 0, bytesIn: 0, denied: 0 };
const names = ['bytesOut', 'bytesIn', 'denied'] as const;

/** `refusedOn`: packets that the rules have refused on a slot's link; undefined while the rules are gone. */
export function createKnownSandboxes(refusedOn: (slot: Slot) => number | undefined): KnownSandboxes {
  const known = new Map<number, Known>();
  const totals = { ...nothing };

  const counters = (slot: Slot): TrafficCounters => {
    const { refusedBefore = 0, denied = 0 } = known.get(slot.number) ?? {};
    return {
      bytesOut: linkBytes(slot, 'rx') || 0,
      bytesIn: linkBytes(slot, 'tx') || 0,
      denied: (refusedOn(slot) ?? refusedBefore) - refusedBefore + denied,
    };
  };
  const countEntry = (entry: Known): TrafficCounters => {
    const now = counters(entry.sandbox.slot);
    entry.counted ??= { ...now };
    for (const name of names) {
      // Fewer than before: the link is gone.
      const more = Math.max(now[name] - entry.counted[name], 0);
      entry.counted[name] += more;
      totals[name] += more;
    }
    return now;
  };
  const count = () => {
    for (const entry of known.values()) countEntry(entry);
  };

  return {
    get: slotNumber => known.get(slotNumber),
    all: () => known.values(),
    adopt(sandbox, policy) {
      known.set(sandbox.slot.number, { sandbox, policy, refusedBefore: 0, denied: 0, counted: undefined });
    },
    put(sandbox, policy) {
      const before = known.get(sandbox.slot.number);
      known.set(sandbox.slot.number, {
        sandbox,
        policy,
        refusedBefore: before?.refusedBefore ?? refusedOn(sandbox.slot) ?? 0,
        denied: before?.denied ?? 0,
        counted: before ? before.counted : { ...nothing },
      });
    },
    remove: slotNumber => known.delete(slotNumber),
    addDenied(slotNumber, more) {
      const entry = known.get(slotNumber);
      if (entry) entry.denied += more;
    },
    counters,
    refusalsBeginAnew() {
      for (const entry of known.values()) {
        entry.denied = Math.max(entry.denied, entry.counted?.denied ?? 0);
        entry.refusedBefore = 0;
      }
    },
    count,
    countOne(slotNumber) {
      const entry = known.get(slotNumber);
      return entry && countEntry(entry);
    },
    totals() {
      count();
      return { ...totals };
    },
  };
}
