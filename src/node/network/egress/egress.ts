import { userIdOf } from '../../../base/part-users.ts';
import { readdirSync, readFileSync } from 'node:fs';
import { isIPv4, isIPv6 } from 'node:net';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { AtollError, messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/log.ts';
import { parseAddress, protectedRange, type EgressPolicy } from '../../../protocol/network.ts';
import type { TrafficCounters } from '../../../protocol/node.ts';
import { tryCommand } from '../../doctor/command.ts';
import { platformInsideAddress, proxyListenAddress, proxyNetwork, type Layout, type Slot } from '../../layout.ts';
import type { NetworkNamespace } from '../../native/netns.ts';
import { proxyPort, refusalGroup, resolverPort, tableOf } from '../host-table.ts';
import { findHostFeatures, flowsPerSandbox, trackedMax } from '../host-features.ts';
import { createForwarding } from '../forwarding.ts';
import { nft } from '../nft.ts';
import { hostRoots, readAuthority } from './authority.ts';
import { limitBandwidth } from './bandwidth.ts';
import { forgetFlows, isRedirected } from './flows.ts';
import { refusedPackets } from './link-verdicts.ts';
import type { Denial, PlatformInside } from './messages.ts';
import { guardLink } from './link-guard.ts';
import { families, giveWay, openNetlink } from './netlink.ts';
import { compilePolicy, inspects, needsProxy, permitsDirect, type CompiledPolicy } from './policy.ts';
import { chainsOf } from './policy-chains.ts';
import { createPolicyTable } from './policy-table.ts';
import { proxyCount, startProxies } from './proxies.ts';
import type { Proxy } from './proxy-process.ts';
import { openTcpSockets, type TcpSocket } from './sockets.ts';
import { watchRefusals, type Refusal } from './refusals.ts';

/** The resolver that sandboxes may always ask where names are allowed, whatever theirs is. */
const publicResolver = '8.8.8.8';

/** What sandboxes are told to ask: a resolver on the host's own loopback stands behind the public one's address. */
export function resolversInside(nameservers: string[]): string[] {
  return [...new Set(nameservers.map(address => (address.startsWith('127.') ? publicResolver : address)))];
}

/** Connections of a sandbox that are closed without giving way to other work. */
const closedAtOnce = 50;
/** Many at a time, and not more often than this: going through the kernel's connections takes milliseconds. */
const staleForMs = 250;

const noTraffic: TrafficCounters = { bytesOut: 0, bytesIn: 0, denied: 0 };

/** A sandbox as its network sees it. */
export type Guest = { sandboxId: string; slot: Slot; namespace: NetworkNamespace };

/** What leaves sandboxes: the host's packet rules, and the proxy for what packets do not show. */
export type Egress = {
  /** Takes note of a sandbox that ran on while the platform did not. Before `install`. */
  adopt(guest: Guest, policy: EgressPolicy): void;
  /** Puts the rules in place, with those of the adopted sandboxes. Until then the rules of the last run hold. */
  install(): Promise<void>;
  /** Closes a link that was just made to everything but IPv4. */
  guard(slot: Slot): void;
  /** Lets a sandbox out as far as its policy goes. Until this resolves it reaches nothing. */
  apply(guest: Guest, policy: EgressPolicy): Promise<void>;
  /** Replaces the policy of a sandbox. When it resolves, connections that are now denied are cut. */
  update(guest: Guest, policy: EgressPolicy): Promise<void>;
  /** Closes the sandbox's way out and forgets it. Of a sandbox that never had one, too. */
  remove(slot: Slot): Promise<void>;
  /** Certificates (PEM) that a sandbox under the policy must trust, if any. */
  trusted(policy: EgressPolicy): string | undefined;
  /** What went through since the sandbox got its policy. */
  counters(slot: Slot): TrafficCounters;
  /** Counts what went through of a sandbox that is about to end into the totals, while its link is still there. */
  note(slot: Slot): void;
  /** Of all sandboxes since the node started. Of one that ended by itself, the last may be missing. */
  totals(): TrafficCounters;
  /** Ends what runs for it in the platform; the rules stay in force. */
  stop(): Promise<void>;
  /** Takes everything off the host. */
  down(): Promise<void>;
};

/** What the operator may choose about traffic out of sandboxes. */
export type EgressSettings = {
  /** What each sandbox may send, and receive, octets a second. Absent: as much as there is. */
  bandwidthBytesPerSecond?: number;
  /**
   * TLS connections that a policy allows by their name are opened as well, so that the requests inside can't name another
   * host that the same server answers for. Programs must trust the installation's authority then, and speak HTTP/1.1.
   */
  opensAllowedNames?: boolean;
  /** Authorities (PEM) that vouch for servers on the internet; the host's own unless given. */
  roots?: string;
  /**
   * Lets sandboxes reach the URLs of sandboxes, `{port}-{sandboxId}.{domain}`, in spite of the host being closed to them.
   * `httpPort`: where the platform's edge listens at `address`; `tlsPort`: its TLS port as URLs show it.
   */
  platform?: { domain: string; address: string; httpPort: number; tlsPort?: number };
};

export type EgressOptions = {
  layout: Layout;
  log: Log;
  /** Told of a sample of what is refused. */
  onDenied(sandboxId: string, denial: Denial): void;
  /** Told what went through of a sandbox that is about to end. */
  onEnd(sandboxId: string, traffic: TrafficCounters): void;
  /** Resolvers that sandboxes use. */
  nameservers: string[];
  settings: EgressSettings;
};

type Known = {
  guest: Guest;
  policy: CompiledPolicy;
  /** The link's counter of refused packets when the sandbox got it. */
  refusedBefore: number;
  /** Connections that the proxy refused. */
  denied: number;
  /** What the totals have of it, or need not have. Undefined for one that ran before this node did, until it is looked at. */
  counted: TrafficCounters | undefined;
};

/** Makes the egress control of an installation. Nothing on the host changes before `install`. */
export function createEgress({ layout, log, onDenied, onEnd, nameservers, settings }: EgressOptions): Egress {
  const { installation } = layout;
  const netfilter = openNetlink(families.netfilter);
  /** For going through the kernel's connections, which takes its time. */
  const sweeper = openNetlink(families.netfilter);
  const table = createPolicyTable(installation, netfilter);
  const known = new Map<number, Known>();
  const totals = { ...noTraffic };
  /** Addresses of sandboxes that are gone, for which the kernel may still keep connections. */
  const stale = new Set<string>();
  /** Those that are being forgotten, and the end of it. */
  const forgetting = new Map<string, Promise<void>>();
  let lastSweep = Promise.resolve();
  let flowsMax = 0;
  let sweep: ReturnType<typeof setTimeout> | undefined;
  const lanes = new Map<number, Promise<unknown>>();
  const localRoutes = [proxyNetwork(installation), proxyListenAddress(installation)];
  const authority = readAuthority(layout.egressAuthority);
  const forwarding = createForwarding({
    installation,
    file: join(layout.run, 'forwarding.json'),
    onError: error => log.error('the way out of sandboxes could not be looked at', { reason: messageOf(error) }),
  });
  // A resolver that only the host reaches is asked by the host.
  const platform = settings.platform && platformInside(installation, settings.platform);
  const forwardDns = platform !== undefined || nameservers.some(address => protectedRange(parseAddress(address) ?? new Uint8Array()) !== undefined);
  let stopWatching = () => {};
  let proxy: Proxy | undefined;

  const chains = (policy: CompiledPolicy) =>
    chainsOf(policy, { forwardDns, platform: platform && { address: platform.insideAddress, ports: [...platform.httpPorts, ...platform.tlsPorts] } });
  const usesProxy = (policy: CompiledPolicy) => needsProxy(policy) || (forwardDns && !policy.closed);

  const note = (refusal: Refusal) => {
    for (const { guest, policy } of known.values()) {
      if (guest.slot.address !== refusal.source) continue;
      const { rule } = refusal.isOneTooMany ? { rule: `at most ${flowsMax} connections at a time` } : permitsDirect(policy, refusal.protocol, refusal.destination, refusal.port);
      onDenied(guest.sandboxId, { host: refusal.destination.join('.'), port: refusal.port, rule });
    }
  };

  const noteDenied = (slot: number, count: number, sample: Denial[]) => {
    const entry = known.get(slot);
    if (!entry) return;
    entry.denied += count;
    for (const denial of sample) onDenied(entry.guest.sandboxId, denial);
  };

  const proxies = proxyCount();
  const launchProxy = () =>
    startProxies(proxies, {
      log,
      onDenied: noteDenied,
      settings: {
        installation,
        listenAddress: proxyListenAddress(installation),
        port: proxyPort,
        resolverPort,
        nameServers: nameservers.map(address => (isIPv6(address) ? `[${address}]` : address)),
        platform,
        opensAllowedNames: settings.opensAllowedNames ?? false,
        roots: settings.roots ?? hostRoots() ?? rootCertificates.join('\n'),
        authority,
        userId: userIdOf('egress', installation),
      },
    });

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
    const { number, interfaceName } = guest.slot;
    const before = known.get(number);
    const { bandwidthBytesPerSecond } = settings;
    if (!before && bandwidthBytesPerSecond !== undefined) limitBandwidth(guest.slot, guest.namespace, bandwidthBytesPerSecond);
    // The proxy first: it must know the sandbox when the first connection is turned to it.
    if (usesProxy(policy) || (before && usesProxy(before.policy))) await proxy?.set(number, source);
    if (stale.has(guest.slot.address)) forgetStale();
    await forgetting.get(guest.slot.address);
    await table.assign(guest.slot, chains(policy));
    const refusedBefore = before?.refusedBefore ?? refusedPackets(netfilter, installation, interfaceName);
    known.set(number, { guest, policy, refusedBefore, denied: before?.denied ?? 0, counted: before ? before.counted : { ...noTraffic } });
    return policy;
  };

  /** The rules have ended the connections already; programs shall know. What the proxy carries, it has ended itself. */
  const closeDenied = async ({ slot, namespace }: Guest, policy: CompiledPolicy) => {
    const sockets = openTcpSockets(namespace);
    const denied: TcpSocket[] = [];
    try {
      for await (const part of sockets.list()) {
        // Those that are not protected lead out of the sandbox, which is few of them.
        denied.push(...part.filter(({ destination, port }) => protectedRange(destination) === undefined && !permitsDirect(policy, 'tcp', destination, port).allowed));
      }
      for (const [index, socket] of denied.entries()) {
        if (index % closedAtOnce === 0) await giveWay();
        if (!isRedirected(netfilter, slot.address, socket)) sockets.destroy(socket);
      }
    } finally {
      sockets.close();
    }
  };

  /** What comes in for a sandbox's old connections must not reach the slot's next one. */
  const markStale = (address: string) => {
    if (stale.size === 0) sweep = setTimeout(forgetStale, staleForMs);
    stale.add(address);
  };
  const forgetStale = () => {
    clearTimeout(sweep);
    const gone = new Set(stale);
    stale.clear();
    const done = lastSweep.then(() => forgetFlows(sweeper, gone));
    lastSweep = done.catch(error => log.error('connections of sandboxes that are gone could not be forgotten', { reason: messageOf(error) }));
    for (const address of gone) forgetting.set(address, done);
    void lastSweep.then(() => {
      for (const address of gone) if (forgetting.get(address) === done) forgetting.delete(address);
    });
  };

  const countersOf = (slot: Slot): TrafficCounters => {
    const { refusedBefore = 0, denied = 0 } = known.get(slot.number) ?? {};
    const refused = refusedPackets(netfilter, installation, slot.interfaceName) - refusedBefore;
    return { bytesOut: linkBytes(slot, 'rx') || 0, bytesIn: linkBytes(slot, 'tx') || 0, denied: refused + denied };
  };

  const count = (entry: Known) => {
    const now = countersOf(entry.guest.slot);
    entry.counted ??= { ...now };
    for (const name of ['bytesOut', 'bytesIn', 'denied'] as const) {
      // Less than before: the link is gone.
      const more = Math.max(now[name] - entry.counted[name], 0);
      entry.counted[name] += more;
      totals[name] += more;
    }
  };

  return {
    adopt(guest, source) {
      known.set(guest.slot.number, { guest, policy: compilePolicy(source), refusedBefore: 0, denied: 0, counted: undefined });
    },

    async install() {
      for (const network of localRoutes) await tryCommand(['ip', 'route', 'replace', 'local', network, 'dev', 'lo']);
      const features = await findHostFeatures();
      flowsMax = flowsPerSandbox(trackedMax());
      proxy = launchProxy();
      for (const { guest, policy } of known.values()) {
        if (usesProxy(policy)) await proxy.set(guest.slot.number, policy.source);
        await table.assign(guest.slot, chains(policy));
      }
      const linksNow = readdirSync('/sys/class/net').filter(name => name.startsWith(`at${installation}-`));
      await table.install({ resolvers: [publicResolver, ...nameservers.filter(isIPv4)], proxies, flowsMax, features, linksNow });
      for (const entry of known.values()) count(entry);
      await forwarding.start();
      stopWatching = await watchRefusals(refusalGroup(installation), note);
    },

    guard: slot => guardLink(netfilter, installation, slot.interfaceName),

    apply: (guest, policy) => inTurn(guest.slot, async () => void (await apply(guest, policy))),

    update: (guest, source) => inTurn(guest.slot, async () => {
      // The slot may have another sandbox by now.
      if (known.get(guest.slot.number)?.guest.sandboxId !== guest.sandboxId) throw new AtollError('not_found', `sandbox ${guest.sandboxId} has ended`);
      const policy = await apply(guest, source);
      await closeDenied(guest, policy);
    }),

    remove: slot => inTurn(slot, async () => {
      table.withdraw(slot);
      await proxy?.remove(slot.number);
      // The link is still there: its network namespace is held open. Most sandboxes have never sent a packet.
      if (known.delete(slot.number) && linkBytes(slot, 'rx') !== 0) markStale(slot.address);
    }),

    trusted(source) {
      const policy = compilePolicy(source);
      return inspects(policy) || (platform && usesProxy(policy)) ? authority.certificate : undefined;
    },

    counters: countersOf,

    note(slot) {
      const entry = known.get(slot.number);
      if (!entry) return;
      count(entry);
      onEnd(entry.guest.sandboxId, countersOf(slot));
    },

    totals() {
      for (const entry of known.values()) count(entry);
      return { ...totals };
    },

    async stop() {
      clearTimeout(sweep);
      forwarding.stop();
      stopWatching();
      await proxy?.stop();
      await lastSweep;
      sweeper.close();
      netfilter.close();
    },

    async down() {
      forwarding.stop();
      for (const family of ['inet', 'netdev']) await nft(`table ${family} ${tableOf(installation)}\ndelete table ${family} ${tableOf(installation)}\n`);
      forwarding.undo();
      for (const network of localRoutes) await tryCommand(['ip', 'route', 'del', 'local', network, 'dev', 'lo']);
    },
  };
}

function platformInside(installation: number, { domain, address, httpPort, tlsPort }: NonNullable<EgressSettings['platform']>): PlatformInside {
  return {
    domain: domain.toLowerCase(),
    insideAddress: platformInsideAddress(installation),
    httpPorts: [...new Set([80, httpPort])],
    tlsPorts: [...new Set([443, ...(tlsPort === undefined ? [] : [tlsPort])])],
    edge: { address, port: httpPort },
  };
}

/** Octets that the host's end of a link has received from, or sent into, the sandbox; NaN where the link is gone. */
function linkBytes(slot: Slot, direction: 'rx' | 'tx'): number {
  try {
    return Number(readFileSync(`/sys/class/net/${slot.interfaceName}/statistics/${direction}_bytes`, 'utf8'));
  } catch {
    return Number.NaN;
  }
}
