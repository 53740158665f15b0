import {
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { installationsMax } from '../../../src/base/process/part-users.ts';
import type { LanMachine } from '../../cluster/support/network.ts';
import { repository } from '../../support/platform.ts';
import { type Finished, runToEnd, waitFor } from '../../support/process.ts';
import { pauseImage } from './images.ts';

// A machine of a Kubernetes: its own network, and a mount namespace in which whatever programs write outside their
// folders stays in memory, so that the host keeps none of it.

/** Slow machines that others use too need minutes for what otherwise takes seconds. */
export const startTimeoutMs = 5 * 60_000;
const commandTimeoutMs = 15 * 60_000;
const controllers = '/sys/fs/cgroup';
const registry = '/run/atoll';

/** The kernel settings that the kubelet expects, by file of /proc/sys: it sees files with these contents instead. */
const kernelDefaults = {
  'vm/overcommit_memory': '1',
  'vm/panic_on_oom': '0',
  'kernel/panic': '10',
  'kernel/panic_on_oops': '1',
  'kernel/keys/root_maxkeys': '1000000',
  'kernel/keys/root_maxbytes': '25000000',
} as const;

/** Where programs without a setting for it write. */
const inMemory = ['/run', '/var/lib', '/var/log', '/opt'];

/** A running machine. Disposing of it ends everything that runs on it. */
export type Machine = AsyncDisposable & {
  name: string;
  /** The network of its pods. */
  pods: string;
  folder: string;
  address: string;
  /** Prefix for a command line that runs on it. */
  enter: string[];
  /** The directory by which this host recognizes the installation on the machine. */
  installation: string;
  run(argv: string[]): Promise<Finished>;
  /** Like `run`; fails if the program does. */
  must(argv: string[]): Promise<string>;
  /** Starts a program that stays, and keeps its output under the name `log`. */
  begin(log: string, ...argv: string[]): void;
  logs(): string;
};

type MachineOptions = {
  name: string;
  /** 0 for the first one. */
  index: number;
  lan: LanMachine;
  /** Of all machines. */
  folder: string;
  /** Where the programs are. */
  programs: string;
  /** Data directory of the node that will run there: the same path on each machine, but a different directory. */
  dataDir: string;
};

/** Starts a machine on which nothing runs yet. */
export async function startMachine(options: MachineOptions): Promise<Machine> {
  const { name, index, lan, programs, dataDir } = options;
  await using started = new AsyncDisposableStack();
  const folder = join(options.folder, name);
  mkdirSync(join(folder, 'logs'), { recursive: true });
  const group = groupOf(folder);
  const groups = makeGroups(group);
  started.defer(() => removeGroups(groups));
  mkdirSync(registry, { recursive: true });
  // The first machine has a number among the installations of this host; further ones, whose directory has the same
  // path, are told that all numbers but one are taken.
  const installation = index === 0 ? dataDir : join(folder, 'installation');
  const number = index === 0 ? undefined : reserveNumber(installation);
  if (number !== undefined) started.defer(() => rmSync(join(registry, String(number)), { recursive: true }));
  const environment = { ...(process.env as Record<string, string>), PATH: `${programs}:${process.env['PATH']}` };
  const spawn = (program: string, argv: string[]) => {
    const log = openSync(join(folder, 'logs', program), 'a');
    return Bun.spawn(argv, { stdin: 'ignore', stdout: log, stderr: log, env: environment, cwd: folder });
  };
  const holder = spawn('machine', [...lan.enter, 'sh', '-c', setUp(folder, dataDir, number), 'sh', folder]);
  const enter = ['nsenter', `--net=/proc/${holder.pid}/ns/net`, `--mount=/proc/${holder.pid}/ns/mnt`, '--'];
  started.defer(() => endAll(holder.pid, groups));
  const env = { ...environment, ATOLL_DATA_DIR: dataDir };
  started.defer(async () => {
    // What a failed test has not removed.
    if ((await runToEnd([...enter, 'test', '-e', join(dataDir, 'cluster-identity')])).exitCode !== 0) return;
    endGroups(groups);
    await runToEnd([...enter, join(repository, 'bin/atoll'), 'down', '--all', '--yes'], { env });
  });
  await waitFor('the namespaces', () => existsSync(join(folder, 'ready')), startTimeoutMs);
  const run = async (argv: string[]): Promise<Finished> =>
    runToEnd([...enter, ...argv], { env: environment, timeoutMs: commandTimeoutMs, cwd: folder });
  const disposal = started.move();
  return {
    name,
    pods: `10.98.${index}.0/24`,
    folder,
    address: lan.address,
    enter,
    installation,
    run,
    async must(argv) {
      const { exitCode, stdout, stderr } = await run(argv);
      if (exitCode !== 0) throw new Error(`${argv.slice(0, 6).join(' ')} ended with ${exitCode}: ${stderr}${stdout}`);
      return stdout;
    },
    begin: (log, ...argv) => void spawn(log, [...enter, ...argv]),
    logs: () =>
      readdirSync(join(folder, 'logs'))
        .map(log => `== ${name} ${log}\n${readFileSync(join(folder, 'logs', log), 'utf8').slice(-3000)}`)
        .join('\n'),
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

/** The archive of an image, and an additional name for it besides the one it contains. */
export type StoredImage = { archive: string; tag?: [string, string] };

/** Starts what makes a machine part of a Kubernetes, with these images in its store. */
export async function startKubelet(
  machine: Machine,
  { pki, dns, images }: { pki: string; dns: string; images: StoredImage[] },
): Promise<void> {
  const { folder, name, address } = machine;
  writeConfigs(machine, { pki, dns });
  machine.begin('containerd', 'containerd', '--config', join(folder, 'containerd.toml'));
  const ctr = ['ctr', '--address', join(folder, 'containerd.sock'), '--namespace', 'k8s.io'];
  await waitFor('containerd', async () => (await machine.run([...ctr, 'version'])).exitCode === 0, startTimeoutMs);
  for (const { archive, tag } of images) {
    await machine.must([...ctr, 'images', 'import', archive]);
    if (tag !== undefined) await machine.must([...ctr, 'images', 'tag', ...tag]);
  }
  machine.begin(
    'kubelet',
    'kubelet',
    `--config=${folder}/kubelet.yaml`,
    `--kubeconfig=${pki}/kubelet-${name}.conf`,
    `--hostname-override=${name}`,
    `--root-dir=${folder}/kubelet`,
    `--node-ip=${address}`,
  );
  machine.begin('kube-proxy', 'kube-proxy', `--config=${folder}/proxy.yaml`);
}

/** Connects the pods of two machines. */
export async function joinNetworks(one: Machine, other: Machine): Promise<void> {
  await one.must(['ip', 'route', 'add', other.pods, 'via', other.address]);
  await other.must(['ip', 'route', 'add', one.pods, 'via', one.address]);
}

/** Takes the highest number that no installation of this host has, for `owner`. */
function reserveNumber(owner: string): number {
  mkdirSync(owner);
  writeFileSync(join(owner, 'lock'), '');
  for (let number = installationsMax - 1; number >= 0; number--) {
    const place = join(registry, String(number));
    if (existsSync(place)) continue;
    mkdirSync(place);
    writeFileSync(join(place, 'owner'), owner);
    return number;
  }
  throw new Error(`this host has ${installationsMax} installations already`);
}

/** Makes the machine's mounts, reports it, and holds the namespaces. `number`: the only one that is free there. */
function setUp(folder: string, dataDir: string, number: number | undefined): string {
  const fakes = Object.entries(kernelDefaults).map(([file, value]) => {
    const fake = join(folder, file.replaceAll('/', '_'));
    writeFileSync(fake, `${value}\n`);
    return `mount --bind ${fake} /proc/sys/${file}`;
  });
  const taken = Array.from({ length: installationsMax }, (_, other) => other).filter(other => other !== number);
  const numbers =
    number === undefined
      ? // All installations of the host take their numbers here; what is mounted in it stays in this namespace.
        ['mount --move "$1/registry" /run/atoll']
      : [
          'mount -t tmpfs lab /run/atoll',
          ...taken.map(other => `mkdir /run/atoll/${other}; printf taken > /run/atoll/${other}/owner`),
          `mkdir -p "$1/data" ${dataDir}`,
          `mount --bind "$1/data" ${dataDir}`,
        ];
  return [
    'set -e',
    'mkdir "$1/registry" "$1/kubelet"',
    'mount --bind /run/atoll "$1/registry"',
    ...inMemory.map(path => `mount -t tmpfs lab ${path}`),
    'mkdir /run/atoll',
    ...numbers,
    'mount --make-shared /run/atoll',
    'mount --bind "$1/kubelet" "$1/kubelet"',
    'mount --make-shared "$1/kubelet"',
    ...fakes,
    'touch "$1/ready"',
    'exec sleep infinity',
  ].join('\n');
}

const groupOf = (folder: string) => folder.split('/').slice(-2).join('-');

/** The networks of the pods of all machines. */
const allPods = '10.98.0.0/16';

function writeConfigs({ folder, address, name, pods }: Machine, { pki, dns }: { pki: string; dns: string }): void {
  const write = (name: string, value: object) => writeFileSync(join(folder, name), JSON.stringify(value));
  writeFileSync(join(folder, 'resolv.conf'), `nameserver ${dns}\n`);
  write('kubelet.yaml', {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${groupOf(folder)}`,
    cgroupsPerQOS: true,
    enforceNodeAllocatable: [],
    // Otherwise it would write the kernel's settings.
    protectKernelDefaults: true,
    makeIPTablesUtilChains: false,
    failSwapOn: false,
    containerRuntimeEndpoint: `unix://${folder}/containerd.sock`,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: `${pki}/ca.crt` },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: `${pki}/kubelet-${name}.crt`,
    tlsPrivateKeyFile: `${pki}/kubelet-${name}.key`,
    address,
    readOnlyPort: 0,
    healthzPort: 0,
    clusterDomain: 'cluster.local',
    clusterDNS: [dns],
    resolvConf: `${folder}/resolv.conf`,
    imageGCHighThresholdPercent: 100,
    evictionHard: { 'memory.available': '1Mi' },
    nodeStatusUpdateFrequency: '5s',
    podLogsDir: `${folder}/kubelet/pods-logs`,
    maxPods: 20,
  });
  write('proxy.yaml', {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    hostnameOverride: name,
    clientConnection: { kubeconfig: `${pki}/admin.conf` },
    clusterCIDR: allPods,
    // Those kernel settings are the host's.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    healthzBindAddress: '127.0.0.1:10256',
    metricsBindAddress: '127.0.0.1:10249',
  });
  mkdirSync(join(folder, 'cni'));
  const ipam = { type: 'host-local', subnet: pods, dataDir: `${folder}/addresses`, routes: [{ dst: '0.0.0.0/0' }] };
  const bridge = { type: 'bridge', bridge: 'cni0', isGateway: true, ipMasq: false, hairpinMode: true, ipam };
  write('cni/10-lab.conflist', { cniVersion: '0.4.0', name: 'lab', plugins: [bridge] });
  writeFileSync(
    join(folder, 'containerd.toml'),
    `version = 2
root = "${folder}/containerd"
state = "${folder}/containerd-state"
[grpc]
  address = "${folder}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "${folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${folder}/cni"
`,
  );
}

/** The cgroup of all pods, in each hierarchy that the machine has. */
function makeGroups(name: string): string[] {
  if (existsSync(join(controllers, 'cgroup.controllers'))) {
    const group = join(controllers, name);
    mkdirSync(group);
    return [group];
  }
  const hierarchies = readdirSync(controllers).filter(entry => existsSync(join(controllers, entry, 'cgroup.procs')));
  return hierarchies.map(entry => {
    const group = join(controllers, entry, name);
    mkdirSync(group);
    for (const file of ['cpuset.cpus', 'cpuset.mems'])
      if (existsSync(join(group, file))) writeFileSync(join(group, file), readFileSync(join(controllers, entry, file)));
    return group;
  });
}

function groupsBelow(group: string): string[] {
  if (!existsSync(group)) return [];
  const below = readdirSync(group, { withFileTypes: true }).filter(entry => entry.isDirectory());
  return [...below.flatMap(({ name }) => groupsBelow(join(group, name))), group];
}

const processesIn = (groups: string[]) =>
  groups
    .flatMap(groupsBelow)
    .flatMap(group => readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number));

function kill(pids: Iterable<number>): void {
  for (const pid of pids)
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
}

/** Ends the processes of all pods. */
const endGroups = (groups: string[]) => kill(processesIn(groups));

async function removeGroups(groups: string[]): Promise<void> {
  await waitFor('the control groups to be empty', () => {
    endGroups(groups);
    return processesIn(groups).length === 0;
  });
  for (const group of groups.flatMap(groupsBelow)) rmdirSync(group);
}

/** Ends every process in the machine's namespaces: with the last one, the namespaces and their mounts are gone. */
async function endAll(holder: number, groups: string[]): Promise<void> {
  const of = (pid: number | string, kind: string) => {
    try {
      return readlinkSync(`/proc/${pid}/ns/${kind}`);
    } catch {
      return undefined;
    }
  };
  const [network, mounts] = [of(holder, 'net'), of(holder, 'mnt')];
  const there = () =>
    readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(Number)
      .filter(pid => of(pid, 'net') === network || of(pid, 'mnt') === mounts);
  await waitFor('the processes of the machine to end', () => {
    endGroups(groups);
    const left = there();
    // Its holder last: the others are found by its namespaces.
    kill(left.filter(pid => pid !== holder));
    return left.every(pid => pid === holder);
  });
  kill([holder]);
}
