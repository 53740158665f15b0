import { join } from 'node:path';
import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { EgressPolicy } from '../../../protocol/network/network.ts';
import type { TrafficCounters } from '../../../protocol/node-usage.ts';
import { slotsOf, type Layout, type Slot } from '../../layout.ts';
import { families, openNetlink } from '../../native/netlink.ts';
import { createForwarding } from '../forwarding.ts';
import { findHostFeatures, flowsPerSandbox, trackedMax } from '../rules/host-features.ts';
import { refusalGroup } from '../rules/refusal-chains.ts';
import { tableOf } from '../rules/table-name.ts';
import { guardLink } from '../rules/link-guard.ts';
import { refusedPackets } from '../rules/link-verdicts.ts';
import { nft } from '../rules/nft.ts';
import { createPolicyTable } from '../rules/policy-table.ts';
import { createForgottenConnections } from './forget-connections.ts';
import { createKnownSandboxes, type ConnectedSandbox } from './known-sandboxes.ts';
import { compilePolicy, type CompiledPolicy } from '../../../protocol/network/egress-policy.ts';
import { inspects } from './policy.ts';
import { proxyCount, startProxies } from './proxies/proxies.ts';
import type { Denial, ProxySettings } from './proxies/messages.ts';
import { watchRefusals } from './refusals.ts';
import { detoursOf, type Detours } from './detours.ts';
import { addLocalRoutes, removeLocalRoutes } from './local-routes.ts';
import { proxyNeedsOf, proxySettingsOf, publicResolver } from './proxies/settings.ts';
import { createReports } from './reports.ts';
import { createWatchedRules } from './rules-watch.ts';
import { SandboxPolicies } from './sandbox-policies.ts';
import type { EgressSettings } from './settings.ts';

/** The resolvers that sandboxes are told to ask: the public one's address stands for one on the host's own loopback. */
export function resolversInside(nameservers: string[]): string[] {
  return [...new Set(nameservers.map(address => (address.startsWith('127.') ? publicResolver : address)))];
}

/** Controls what leaves sandboxes: the host's packet rules, and the proxy for what packets do not show. */
export type Egress = {
  /** Takes over a sandbox that ran on while the platform did not. Called before `install`. */
  adopt(sandbox: ConnectedSandbox, policy: EgressPolicy): void;
  /**
   * Puts the rules in place, with those of the adopted sandboxes. Until then the rules of the last run are in force.
   */
  install(): Promise<void>;
  /** Closes a new link to everything but a sandbox's own packets. */
  guard(slot: Slot): Promise<void>;
  /** Lets a sandbox out as far as its policy allows. Until this resolves, it reaches nothing. */
  apply(sandbox: ConnectedSandbox, policy: EgressPolicy): Promise<void>;
  /** Replaces the policy of a sandbox. When this resolves, connections that are now denied are cut. */
  update(sandbox: ConnectedSandbox, policy: EgressPolicy): Promise<void>;
  /** Closes the sandbox's way out and forgets it; also works for one that had none. */
  remove(slot: Slot): Promise<void>;
  /** Certificates (PEM) that a sandbox under the policy must trust, if any. */
  trusted(policy: EgressPolicy): string | undefined;
  /** The traffic since the sandbox got its policy. */
  counters(slot: Slot): TrafficCounters;
  /** Adds the traffic of a sandbox that is about to end to the totals, while its link is still there. */
  countLast(slot: Slot): void;
  /** Bytes of all sandboxes since the node started; those of a sandbox that ended by itself may lack the last ones. */
  totals(): TrafficCounters;
  /** Ends what runs for it in the platform; the rules stay in force. */
  stop(): Promise<void>;
  /** Removes everything from the host. */
  down(): Promise<void>;
};

/** What the egress control of an installation needs. */
type EgressOptions = {
  layout: Layout;
  log: Log;
  /** Gets a sample of the refusals. */
  onDenied(sandboxId: string, denial: Denial): void;
  /** Gets the traffic of a sandbox that is about to end. */
  onEnd(sandboxId: string, traffic: TrafficCounters): void;
  /** Resolvers that sandboxes use. */
  nameservers: string[];
  /** Whether sandboxes have IPv6. */
  ipv6: boolean;
  settings: EgressSettings;
};

/** Makes the egress control of an installation. Nothing on the host changes before `install`. */
export function createEgress(options: EgressOptions): Egress {
  const { layout, log, nameservers, ipv6, settings } = options;
  const { installation } = layout;
  const netfilter = openNetlink(families.netfilter);
  const table = createPolicyTable(installation, netfilter);
  const known = createKnownSandboxes(slot => refusedPackets(netfilter, installation, slot.interfaceName));
  const forgotten = createForgottenConnections(log, ipv6);
  const forwarding = forwardingOf(layout, log, ipv6);
  const proxySettings = proxySettingsOf(options);
  const detours = detoursOf(proxySettings, nameservers);
  const reports = createReports(known, options.onDenied);
  const { bandwidthBytesPerSecond } = settings;
  const policies = new SandboxPolicies({ netfilter, table, known, forgotten, detours, bandwidthBytesPerSecond });
  const rules = createWatchedRules(netfilter, { installation, log, table, known, forwarding });
  let stopWatching = () => {};

  return {
    adopt: (sandbox, source) => known.adopt(sandbox, compilePolicy(source)),

    async install() {
      const [features] = await Promise.all([findHostFeatures(), addLocalRoutes(installation)]);
      const flowsMax = flowsPerSandbox(trackedMax());
      const proxies = proxyCount();
      await policies.install(startProxies(proxies, { log, onDenied: reports.ofProxy, settings: proxySettings }));
      const proxyNeeds = proxyNeedsOf(proxySettings);
      await rules.install({ resolvers: proxySettings.resolvers, proxyNeeds, proxies, flowsMax, ipv6, features });
      known.count();
      // Sandboxes in the other slots may have ended while nobody looked.
      for (const slot of slotsOf(installation)) if (!known.get(slot.number)) forgotten.leave(slot);
      await forwarding.start();
      stopWatching = await watchRefusals(refusalGroup(installation), refusal => reports.ofRules(refusal, flowsMax));
    },

    guard: slot => table.whenThere(() => guardLink(netfilter, installation, slot.interfaceName)),

    apply: (sandbox, policy) => policies.apply(sandbox, policy),
    update: (sandbox, policy) => policies.update(sandbox, policy),
    remove: slot => policies.remove(slot),

    trusted: source => trustedUnder(compilePolicy(source), proxySettings, detours),

    counters: known.counters,

    countLast(slot) {
      const entry = known.get(slot.number);
      const counters = known.countOne(slot.number);
      if (entry && counters) options.onEnd(entry.sandbox.sandboxId, counters);
    },

    totals: known.totals,

    async stop() {
      forwarding.stop();
      stopWatching();
      await rules.stop();
      await policies.stop();
      await forgotten.stop();
      netfilter.close();
    },

    async down() {
      forwarding.stop();
      await rules.stop();
      await removeTables(installation);
      forwarding.undo();
      await removeLocalRoutes(installation);
    },
  };
}

function forwardingOf({ installation, run }: Layout, log: Log, ipv6: boolean) {
  return createForwarding({
    installation,
    ipv6,
    file: join(run, 'forwarding.json'),
    onError: error => log.error('the way out of sandboxes could not be looked at', { reason: messageOf(error) }),
  });
}

/** Removes the packet rules. Declaring each table first makes sure that it exists. */
async function removeTables(installation: number): Promise<void> {
  const table = tableOf(installation);
  for (const family of ['inet', 'netdev']) await nft(`table ${family} ${table}\ndelete table ${family} ${table}\n`);
}

/** The authority of the proxy's certificates, if it opens connections under the policy. */
function trustedUnder(
  policy: CompiledPolicy,
  { platform, authority }: ProxySettings,
  detours: Detours,
): string | undefined {
  const isOpened = inspects(policy) || (platform && detours.usesProxy(policy) === 'needed');
  return isOpened ? authority.certificate : undefined;
}
