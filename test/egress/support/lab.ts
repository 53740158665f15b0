import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeAuthority } from '../../../src/base/crypto/certificate.ts';
import type { EgressSettings } from '../../../src/node/network/egress/settings.ts';
import type { BuildResult } from '../../../src/protocol/build.ts';
import type { EgressPolicy } from '../../../src/protocol/network/network.ts';
import type { DriverName } from '../../../src/protocol/driver.ts';
import type { TrafficCounters } from '../../../src/protocol/node-usage.ts';
import {
  addresses,
  addressesV6,
  hostPublic,
  hostPublicV6,
  hostUplink,
  hostileServer,
  internetUplink,
  uplinkV6,
  victimAddresses,
  victimAddressesV6,
} from './addresses.ts';
import { ownNames } from './names.ts';
import { startRemote, type Remote } from './rpc.ts';

const here = import.meta.dir;

type Result = { exitCode: number; stdout: string; stderr: string };
export type LabOptions = {
  /** Resolvers in the sandboxes' resolv.conf; default: the lab's own public one. */
  nameservers?: string[];
  egress?: EgressSettings;
  /** The sandboxes' driver; default: crun. */
  driver?: DriverName;
  /** What build steps can reach; default: the internet. */
  buildNetwork?: EgressPolicy;
  /** The machine has a way to the internet by IPv6. */
  ipv6?: boolean;
  /** The authority that signs the certificates of the lab's servers: set by the lab. */
  roots?: string;
};

/**
 * A machine with a node, and an internet, each in its own network namespace: the node's default route leads to servers
 * that the test made, at addresses that look public.
 */
export type Lab = {
  /** The node's number among the installations on this machine. */
  installation: number;
  create(policy: EgressPolicy): Promise<string>;
  /** Answers how long the node took, ms. */
  update(sandboxId: string, policy: EgressPolicy): Promise<number>;
  /** Answers what it was resumed with: `memory`, or `filesystem` if the machine can't keep memory. */
  pauseAndResume(sandboxId: string, policy: EgressPolicy): Promise<string>;
  kill(sandboxId: string): Promise<void>;
  /** Runs a shell command inside; default: as root. */
  run(sandboxId: string, command: string, user?: string): Promise<Result>;
  /** Runs a Python program inside, as root. */
  python(sandboxId: string, program: string): Promise<Result>;
  /**
   * Runs a Python program in the sandbox's network namespace, with the rights of the host's root: what a sandbox could
   * send if only its network stopped it.
   */
  pythonOnLink(sandboxId: string, program: string): Promise<Result>;
  /** Builds a template of one command on the base layer, and answers the outcome; `network`: as in a Dockerfile. */
  build(command: string, network?: 'none' | 'default'): Promise<BuildResult>;
  traffic(sandboxId: string): Promise<TrafficCounters>;
  /** What the node has logged since the last call, one JSON object a line. */
  logged(): Promise<string[]>;
  /** The sandbox's own log. */
  history(sandboxId: string): Promise<string[]>;
  /** Stops the node, sandboxes running on, and starts another on the same data. */
  restart(): Promise<void>;
  /** Requests that reached the internet's servers since the last call. */
  visits(): Promise<Visit[]>;
  /** From here on, counts packets that arrive on the internet, except those that an nft match permits. */
  watch(permitted: string[]): void;
  /** How many it has counted. By default: packets to the addresses that no policy opens. */
  strays(): Promise<number>;
  /** Connections and datagrams to services of the machine itself, since the last call. */
  intrusions(): Promise<string[]>;
  /** Runs a program in the machine's or the internet's network namespace and answers its output. */
  inHost(...argv: string[]): string;
  inInternet(...argv: string[]): string;
  internet: Remote;
  node: Remote;
  dispose(): Promise<void>;
};

export type Visit = { service: string; from: string; detail: string };

export async function startLab(options: LabOptions = {}): Promise<Lab> {
  const tag = `atoll-${process.pid}-${Math.random().toString(36).slice(2, 6)}`;
  const names = { host: `${tag}-h`, internet: `${tag}-i` };
  const dataDir = mkdtempSync(join(tmpdir(), 'atoll-egress-'));
  const cleanUp = () => {
    for (const name of Object.values(names)) Bun.spawnSync(['ip', 'netns', 'del', name], { stderr: 'ignore' });
    rmSync(dataDir, { recursive: true, force: true });
  };
  try {
    makeNamespaces(names);
    if (options.ipv6) addIpv6(names);
    const authority = makeAuthority('Authority of the lab', 30);
    const internet = await startRemote([
      'nsenter',
      `--net=/run/netns/${names.internet}`,
      process.execPath,
      join(here, 'internet.ts'),
      JSON.stringify(authority),
      JSON.stringify(options.ipv6 ?? false),
    ]);
    const node = await startRemote([
      'nsenter',
      `--net=/run/netns/${names.host}`,
      'unshare',
      '--mount',
      '--propagation',
      'slave',
      'sh',
      join(here, 'own-sysfs.sh'),
      process.execPath,
      join(here, 'lab-node.ts'),
      dataDir,
      JSON.stringify({ ...options, roots: authority.certificate }),
    ]);
    const installation = await node.call<number>('installation');
    await internet.call('define', ownNames(installation));
    return {
      installation,
      create: policy => node.call('create', policy),
      update: (sandboxId, policy) => node.call('update', sandboxId, policy),
      pauseAndResume: (sandboxId, policy) => node.call('pauseAndResume', sandboxId, policy),
      kill: sandboxId => node.call('kill', sandboxId),
      run: (sandboxId, command, user = 'root') => node.call('run', sandboxId, command, user),
      python: (sandboxId, program) =>
        node.call('run', sandboxId, `echo ${Buffer.from(program).toString('base64')} | base64 -d | python3 -`, 'root'),
      async pythonOnLink(sandboxId, program) {
        const { stdout } = await node.call<Result>('run', sandboxId, 'readlink /proc/self/ns/net', 'root');
        const child = Bun.spawn(['nsenter', `--net=/proc/${processIn(stdout.trim())}/ns/net`, 'python3', '-'], {
          stdin: Buffer.from(program),
          stdout: 'pipe',
          stderr: 'pipe',
        });
        const [output, errors, exitCode] = await Promise.all([
          new Response(child.stdout).text(),
          new Response(child.stderr).text(),
          child.exited,
        ]);
        return { exitCode, stdout: output, stderr: errors };
      },
      build: (command, network) => node.call('build', command, network),
      traffic: sandboxId => node.call('traffic', sandboxId),
      logged: () => node.call('logged'),
      history: sandboxId => node.call('history', sandboxId),
      restart: () => node.call('restart'),
      visits: () => internet.call('visits'),
      watch: permitted => watchArrivals(names.internet, permitted),
      strays: async () =>
        straysIn(run('ip', 'netns', 'exec', names.internet, 'nft', 'list', 'table', 'inet', 'strays')),
      intrusions: () => node.call('intrusions'),
      inHost: (...argv) => run('ip', 'netns', 'exec', names.host, ...argv),
      inInternet: (...argv) => run('ip', 'netns', 'exec', names.internet, ...argv),
      internet,
      node,
      async dispose() {
        await node.stop();
        await internet.stop();
        cleanUp();
      },
    };
  } catch (error) {
    cleanUp();
    throw error;
  }
}

/** A process whose network namespace is the one that a link names. */
function processIn(namespace: string): string {
  const found = readdirSync('/proc').find(pid => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/ns/net`) === namespace;
    } catch {
      return false; // it has ended
    }
  });
  if (found === undefined) throw new Error(`no process is in ${namespace}`);
  return found;
}

function makeNamespaces({ host, internet }: { host: string; internet: string }): void {
  for (const name of [host, internet]) {
    run('ip', 'netns', 'add', name);
    run('ip', '-n', name, 'link', 'set', 'lo', 'up');
  }
  run('ip', '-n', host, 'link', 'add', 'up0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', internet);
  run('ip', '-n', host, 'address', 'add', `${hostUplink}/24`, 'dev', 'up0');
  run('ip', '-n', internet, 'address', 'add', `${internetUplink}/24`, 'dev', 'eth0');
  run('ip', '-n', host, 'link', 'set', 'up0', 'up');
  run('ip', '-n', internet, 'link', 'set', 'eth0', 'up');
  run('ip', '-n', host, 'route', 'add', 'default', 'via', internetUplink);
  for (const address of [...Object.values(addresses), hostileServer, ...victimAddresses])
    run('ip', '-n', internet, 'address', 'add', `${address}/32`, 'dev', 'lo');
  run('ip', '-n', host, 'address', 'add', `${hostPublic}/32`, 'dev', 'lo');
  // As on a machine that is no router; a new namespace inherits this one's setting.
  run('ip', 'netns', 'exec', host, 'sysctl', '-qw', 'net.ipv4.ip_forward=0');
  // What the two exchange by themselves would be counted.
  run('ip', 'netns', 'exec', host, 'sysctl', '-qw', 'net.ipv6.conf.up0.disable_ipv6=1');
  run('ip', 'netns', 'exec', internet, 'sysctl', '-qw', 'net.ipv6.conf.eth0.disable_ipv6=1');
  watchArrivals(internet, ['ip daddr != @victims']);
}

/** As on a machine that is no router and learned the way out from its router. */
function addIpv6({ host, internet }: { host: string; internet: string }): void {
  for (const [name, link, own, other] of [
    [host, 'up0', uplinkV6.host, uplinkV6.internet],
    [internet, 'eth0', uplinkV6.internet, uplinkV6.host],
  ] as const) {
    const settings = ['addr_gen_mode=1', 'accept_dad=0', 'disable_ipv6=0'];
    run('ip', 'netns', 'exec', name, 'sysctl', '-qw', ...settings.map(text => `net.ipv6.conf.${link}.${text}`));
    run('ip', '-n', name, 'address', 'add', `${own}/64`, 'dev', link, 'nodad');
    run('ip', '-n', name, '-6', 'route', 'add', 'default', 'via', other);
  }
  for (const address of Object.values(addressesV6))
    run('ip', '-n', internet, 'address', 'add', `${address}/128`, 'dev', 'lo', 'nodad');
  run('ip', '-n', host, 'address', 'add', `${hostPublicV6}/128`, 'dev', 'lo', 'nodad');
  run('ip', 'netns', 'exec', host, 'sysctl', '-qw', 'net.ipv6.conf.all.forwarding=0');
  watchArrivals(internet, ['ip daddr != @victims', 'ip6 daddr != @victims_v6']);
}

function watchArrivals(internet: string, permitted: string[]): void {
  const rules = `table inet strays
delete table inet strays
table inet strays {
  set victims {
    type ipv4_addr
    elements = { ${victimAddresses.join(', ')} }
  }
  set victims_v6 {
    type ipv6_addr
    elements = { ${victimAddressesV6.join(', ')} }
  }
  chain arriving {
    type filter hook prerouting priority raw; policy accept;
    iifname != "eth0" return
    ip6 hoplimit 255 icmpv6 type { 135, 136 } return
    ip6 daddr ff02::16 return
${permitted.map(match => `    ${match} return\n`).join('')}    counter
  }
}
`;
  run('ip', 'netns', 'exec', internet, 'sh', '-c', 'printf "%s" "$0" | nft -f -', rules);
}

function straysIn(listing: string): number {
  const packets = /counter packets (\d+)/.exec(listing)?.[1];
  if (packets === undefined) throw new Error(`no counter in ${listing}`);
  return Number(packets);
}

function run(...argv: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(argv);
  if (exitCode !== 0) throw new Error(`${argv.join(' ')}: ${stderr.toString().trim()}`);
  return stdout.toString();
}
