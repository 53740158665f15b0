import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { findHostFeatures, flowsPerSandbox, trackedMax } from '../network/rules/host-features.ts';
import { withoutIpv6 } from '../network/ipv6.ts';
import { hostTable } from '../network/rules/host-table.ts';
import { proxyPort, resolverPort } from '../network/rules/proxy-chains.ts';
import { proxyCount } from '../network/egress/proxies/proxies.ts';
import { tryInNetworkNamespace } from '../../base/process/command.ts';
import { limited, ok, type Probe, type ProbeResult } from './probe.ts';

/** Rules of the kinds that network policies need, in addition to those in force today. */
const policyRules = `
table inet atoll-doctor {
  set networks { typeof iifname . ip daddr; flags interval; }
  chain transparent {
    type filter hook prerouting priority mangle; policy accept;
    tcp dport 443 tproxy ip to 127.0.0.1:1 meta mark set 0x77 accept
  }
}
`;

/**
 * What the network of sandboxes needs, tried in a network namespace that is gone afterwards; and whether `port` is
 * free or, with `servesPort`, the platform's own.
 */
export function networkProbes({ port, servesPort }: { port: number; servesPort: boolean }): Probe[] {
  return [
    {
      name: 'nftables',
      needed: true,
      remedy: 'Install nftables, and a kernel with CONFIG_NF_TABLES, NFT_NAT, NFT_MASQ and NFT_CT.',
      async look() {
        await tryInNetworkNamespace(
          ['nft', '-f', '-'],
          hostTable({
            installation: 0,
            resolvers: [],
            proxyNeeds: { nameServers: [], edgePort: undefined },
            proxies: proxyCount(),
            flowsMax: 1,
            ipv6: withoutIpv6() === undefined,
            features: await findHostFeatures(),
            linksNow: [],
            guards: { ways_out: [], ways_out_v6: [] },
            policies: [],
          }),
        );
        return ok('the rules of an installation load');
      },
    },
    { name: 'connection tracking', needed: false, look: lookAtTracking },
    {
      name: 'transparent proxy',
      needed: false,
      remedy: 'Rules by domain name need a kernel with CONFIG_NFT_TPROXY and NFT_SOCKET.',
      async look() {
        await tryInNetworkNamespace(['nft', '-f', '-'], policyRules);
        return ok('nftables takes tproxy rules and sets of networks');
      },
    },
    { name: 'ports of the egress proxies', needed: false, look: lookAtProxyPorts },
    {
      name: 'veth',
      needed: true,
      remedy: 'Install iproute2, and a kernel with CONFIG_VETH (`modprobe veth`).',
      async look() {
        await tryInNetworkNamespace(['ip', 'link', 'add', 'atoll-a', 'type', 'veth', 'peer', 'name', 'atoll-b']);
        return ok('links into sandboxes can be made');
      },
    },
    {
      name: 'way out',
      needed: false,
      look() {
        const gateway = readFileSync('/proc/net/route', 'utf8')
          .split('\n')
          .some(line => line.split('\t')[1] === '00000000');
        return gateway
          ? ok('IPv4 default route')
          : limited('no IPv4 default route: sandboxes reach nothing outside', 'Give the host a default route.');
      },
    },
    {
      name: 'port',
      needed: false,
      async look() {
        if (servesPort) return ok(`${port} is served by this installation`);
        const failure = await listenFailure(port);
        return failure === undefined
          ? ok(`${port} is free`)
          : limited(`${port}: ${failure}`, 'End what uses it, or set ATOLL_PORT to another one.');
      },
    },
  ];
}

/** How many sandboxes at their limit the table should hold, with a quarter left for the host. */
const sandboxesWanted = 64;

async function lookAtTracking(): Promise<ProbeResult> {
  const { countsFlows, forgetsClosed } = await findHostFeatures();
  const tracked = trackedMax();
  const each = flowsPerSandbox(tracked);
  if (!countsFlows)
    return limited(
      'the kernel does not count connections by sandbox; new ones are limited instead',
      'A kernel with CONFIG_NFT_CONNLIMIT counts them.',
    );
  if (!forgetsClosed)
    return limited(
      'the kernel keeps closed connections of sandboxes for two minutes; they may open few new ones instead',
      'A kernel with CONFIG_NF_CONNTRACK_TIMEOUT forgets them sooner.',
    );
  const detail = `${tracked} connections in all, ${each} for one sandbox`;
  const enough = (tracked * 3) / 4 / each >= sandboxesWanted;
  return enough
    ? ok(detail)
    : limited(
        `${detail}: fewer than ${sandboxesWanted} sandboxes can take all of them`,
        'Raise it: `sysctl net.netfilter.nf_conntrack_max=262144`.',
      );
}

/** A loopback address that nobody listens at: a port taken there is taken at every address. */
const unusedAddress = '127.198.19.1';

/** Proxies listen at addresses of their own; a program that listens at all addresses takes the port from them. */
async function lookAtProxyPorts(): Promise<ProbeResult> {
  const taken: string[] = [];
  for (let index = 0; index < proxyCount(); index++) {
    if (!isFree(proxyPort + index)) taken.push(`TCP ${proxyPort + index}`);
    if (!isFree(resolverPort + index)) taken.push(`TCP ${resolverPort + index}`);
    if (!(await isFreeForDatagrams(resolverPort + index))) taken.push(`UDP ${resolverPort + index}`);
  }
  return taken.length === 0
    ? ok(`TCP from ${proxyPort}, TCP and UDP from ${resolverPort} are free`)
    : limited(
        `in use at all addresses: ${taken.join(', ')}; policies with domains, header rules or a proxy can't be applied`,
        'End what uses them (`ss -lntup`), or have it listen at addresses of its own.',
      );
}

/** Uses the same calls by which the proxy listens. */
function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: unusedAddress, port, socket: { data() {} } }).stop();
    return true;
  } catch {
    return false; // whatever makes the port unusable is the finding
  }
}

async function isFreeForDatagrams(port: number): Promise<boolean> {
  try {
    (await Bun.udpSocket({ hostname: unusedAddress, port })).close();
    return true;
  } catch {
    return false; // whatever makes the port unusable is the finding
  }
}

function listenFailure(port: number): Promise<string | undefined> {
  return new Promise(resolve => {
    const server = createServer();
    server.once('error', error => resolve(error.message));
    server.listen(port, () => server.close(() => resolve(undefined)));
  });
}
