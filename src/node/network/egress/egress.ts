import { readFileSync, writeFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { AtollError } from '../../../base/error.ts';
import type { Log } from '../../../base/log.ts';
import type { EgressPolicy } from '../../../protocol/network.ts';
import type { TrafficCounters } from '../../../protocol/node.ts';
import { tryCommand } from '../../doctor/command.ts';
import { proxyListenAddress, proxyNetwork, type Layout, type Slot } from '../../layout.ts';
import type { NetworkNamespace } from '../../native/netns.ts';
import { refusalGroup, tableOf } from '../host-table.ts';
import { nft } from '../nft.ts';
import { destroySockets, flowsOf, forgetFlow } from './flows.ts';
import { refusedPackets } from './link-verdicts.ts';
import { families, openNetlink } from './netlink.ts';
import { compilePolicy, permitsDirect, type CompiledPolicy } from './policy.ts';
import { chainsOf } from './policy-chains.ts';
import { createPolicyTable } from './policy-table.ts';
import { watchRefusals, type Refusal } from './refusals.ts';

/** The resolver that sandboxes may always ask where names are allowed, whatever theirs is. */
const publicResolver = '8.8.8.8';

/** A sandbox as its network sees it. */
export type Guest = { sandboxId: string; slot: Slot; namespace: NetworkNamespace };

/** What leaves sandboxes: the host's packet rules, and the proxy for what packets do not show. */
export type Egress = {
  /** Takes note of a sandbox that ran on while the platform did not. Before `install`. */
  adopt(guest: Guest, policy: EgressPolicy): void;
  /** Puts the rules in place, with those of the adopted sandboxes. Until then the rules of the last run hold. */
  install(): Promise<void>;
  /** Lets a sandbox out as far as its policy goes. Until this resolves it reaches nothing. */
  apply(guest: Guest, policy: EgressPolicy): Promise<void>;
  /** Replaces the policy of a sandbox. When it resolves, connections that are now denied are cut. */
  update(guest: Guest, policy: EgressPolicy): Promise<void>;
  /** Closes the sandbox's way out and forgets it. Of a sandbox that never had one, too. */
  remove(slot: Slot): Promise<void>;
  /** What went through since the sandbox got its policy. */
  counters(slot: Slot): TrafficCounters;
  /** Ends what runs for it in the platform; the rules stay in force. */
  stop(): Promise<void>;
  /** Takes everything off the host. */
  down(): Promise<void>;
};

export type EgressOptions = {
  layout: Layout;
  log: Log;
  /** Resolvers that sandboxes use. */
  nameservers: string[];
};

type Known = { guest: Guest; policy: CompiledPolicy; refusedBefore: number };

/** Makes the egress control of an installation. Nothing on the host changes before `install`. */
export function createEgress({ layout, log, nameservers }: EgressOptions): Egress {
  const { installation } = layout;
  const netfilter = openNetlink(families.netfilter);
  const table = createPolicyTable(installation, netfilter);
  const known = new Map<number, Known>();
  const lanes = new Map<number, Promise<unknown>>();
  const localRoutes = [proxyNetwork(installation), proxyListenAddress(installation)];
  let stopWatching = () => {};

  const chains = (policy: CompiledPolicy) => chainsOf(policy, { forwardDns: false });

  const note = (refusal: Refusal) => {
    for (const { guest, policy } of known.values()) {
      if (guest.slot.address !== refusal.source) continue;
      const { rule } = permitsDirect(policy, refusal.protocol, refusal.destination, refusal.port);
      const host = refusal.destination.join('.');
      log.info(`denied: host ${host} port ${refusal.port} by rule ${rule}`, { sandboxId: guest.sandboxId, protocol: refusal.protocol });
    }
  };

  /** One change of a sandbox's policy after the other. */
  const inTurn = <T>(slot: Slot, work: () => Promise<T>): Promise<T> => {
    const turn = (lanes.get(slot.number) ?? Promise.resolve()).then(work);
    const settled: Promise<void> = turn.then(() => {}, () => {});
    lanes.set(slot.number, settled);
    void settled.then(() => lanes.get(slot.number) === settled && lanes.delete(slot.number));
    return turn;
  };

  const apply = async (guest: Guest, source: EgressPolicy) => {
    const policy = compilePolicy(source);
    const refusedBefore = known.get(guest.slot.number)?.refusedBefore ?? refusedPackets(netfilter, installation, guest.slot.interfaceName);
    await table.assign(guest.slot, chains(policy));
    known.set(guest.slot.number, { guest, policy, refusedBefore });
    return policy;
  };

  return {
    adopt(guest, source) {
      known.set(guest.slot.number, { guest, policy: compilePolicy(source), refusedBefore: 0 });
    },

    async install() {
      for (const network of localRoutes) await tryCommand(['ip', 'route', 'replace', 'local', network, 'dev', 'lo']);
      for (const { guest, policy } of known.values()) await table.assign(guest.slot, chains(policy));
      await table.install([publicResolver, ...nameservers.filter(isIPv4)]);
      writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
      stopWatching = await watchRefusals(refusalGroup(installation), note);
    },

    apply: (guest, policy) => inTurn(guest.slot, async () => void (await apply(guest, policy))),

    update: (guest, source) => inTurn(guest.slot, async () => {
      // The slot may have another sandbox by now.
      if (known.get(guest.slot.number)?.guest.sandboxId !== guest.sandboxId) throw new AtollError('not_found', `sandbox ${guest.sandboxId} has ended`);
      const policy = await apply(guest, source);
      const direct = flowsOf(netfilter, guest.slot.address).filter(flow => !flow.redirected);
      const denied = direct.filter(flow => !permitsDirect(policy, flow.protocol, flow.destination, flow.port).allowed);
      for (const flow of denied) forgetFlow(netfilter, flow);
      destroySockets(denied, guest.namespace.netlinkSocket);
    }),

    remove: slot => inTurn(slot, async () => {
      await table.withdraw(slot);
      // What comes in for the old connections must not reach the slot's next sandbox.
      if (known.delete(slot.number)) for (const flow of flowsOf(netfilter, slot.address)) forgetFlow(netfilter, flow);
    }),

    counters(slot) {
      const refused = refusedPackets(netfilter, installation, slot.interfaceName) - (known.get(slot.number)?.refusedBefore ?? 0);
      return { bytesOut: linkBytes(slot, 'rx'), bytesIn: linkBytes(slot, 'tx'), denied: refused };
    },

    async stop() {
      stopWatching();
      netfilter.close();
    },

    async down() {
      await nft(`table inet ${tableOf(installation)}\ndelete table inet ${tableOf(installation)}\n`);
      for (const network of localRoutes) await tryCommand(['ip', 'route', 'del', 'local', network, 'dev', 'lo']);
    },
  };
}

/** Octets that the host's end of a link has received from, or sent into, the sandbox. */
function linkBytes(slot: Slot, direction: 'rx' | 'tx'): number {
  try {
    return Number(readFileSync(`/sys/class/net/${slot.interfaceName}/statistics/${direction}_bytes`, 'utf8'));
  } catch {
    return 0; // the link is gone
  }
}
