import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { makeLan } from '../../cluster/support/network.ts';
import { postgresPrograms } from '../../api/postgres.ts';
import { repository } from '../../support/platform.ts';
import { type Finished, runToEnd, waitFor } from '../../support/process.ts';
import { writeCertificates } from './certificates.ts';
import { pauseImage, writePauseImage } from './images.ts';
import { ensurePrograms } from './programs.ts';

// A whole Kubernetes of one machine: etcd, control plane, kubelet, containerd. It has a network of its own, and a mount
// namespace in which what its programs write beside their folders is in memory: the host keeps nothing of it.

/** Slow machines that others use too need minutes for what takes seconds. */
const startTimeoutMs = 5 * 60_000;
const commandTimeoutMs = 15 * 60_000;
const apiPort = 16_443;
const controllers = '/sys/fs/cgroup';

/** What the kubelet expects of the kernel, by file of /proc/sys: it sees files with this in their place. */
const kernelDefaults = {
  'vm/overcommit_memory': '1',
  'vm/panic_on_oom': '0',
  'kernel/panic': '10',
  'kernel/panic_on_oops': '1',
  'kernel/keys/root_maxkeys': '1000000',
  'kernel/keys/root_maxbytes': '25000000',
} as const;

/** Where programs write that have no setting for it. */
const inMemory = ['/run', '/var/lib', '/var/log', '/opt'];

/** A Kubernetes that runs. Disposing of it ends it, with all that runs in it. */
export type Lab = AsyncDisposable & {
  folder: string;
  /** Of its one machine, as it is reached from here and from within. */
  address: string;
  /** What a command line begins with that runs on its machine. */
  enter: string[];
  databaseUrl: string;
  kubectl(...args: string[]): Promise<string>;
  helm(...args: string[]): Promise<string>;
  /** Ends of the logs of its programs. */
  logs(): string;
};

/** Starts one with the image of a release in the machine's store. `dataDir`: of the node that will run there. */
export async function startLab(image: string, dataDir: (folder: string) => string): Promise<Lab> {
  const { folder: programs, helm } = await ensurePrograms();
  await using started = new AsyncDisposableStack();
  const folder = mkdtempSync('/var/tmp/atoll-kube-');
  started.defer(() => rmSync(folder, { recursive: true, force: true }));
  const lan = started.use(await makeLan());
  const { address, enter: beside } = await lan.add('k');
  const group = folder.slice(folder.lastIndexOf('/') + 1);
  const groups = makeGroups(group);
  started.defer(() => removeGroups(groups));
  const logs = join(folder, 'logs');
  mkdirSync(logs);
  mkdirSync('/run/atoll', { recursive: true });
  const environment = { ...(process.env as Record<string, string>), PATH: `${programs}:${process.env['PATH']}` };
  const spawn = (name: string, argv: string[]) => {
    const log = openSync(join(logs, name), 'a');
    return Bun.spawn(argv, { stdin: 'ignore', stdout: log, stderr: log, env: environment, cwd: folder });
  };
  const holder = spawn('machine', [...beside, 'sh', '-c', setUp(folder), 'sh', folder]);
  const enter = ['nsenter', `--net=/proc/${holder.pid}/ns/net`, `--mount=/proc/${holder.pid}/ns/mnt`, '--'];
  started.defer(() => endAll(holder.pid, groups));
  started.defer(async () => {
    // What a test has not removed that failed.
    const env = { ...environment, ATOLL_DATA_DIR: dataDir(folder) };
    if (existsSync(join(dataDir(folder), 'cluster-identity'))) {
      endGroups(groups);
      await runToEnd([...enter, join(repository, 'bin/atoll'), 'down', '--all', '--yes'], { env });
    }
  });
  await waitFor('the namespaces', () => existsSync(join(folder, 'ready')), startTimeoutMs);
  const run = async (argv: string[]): Promise<Finished> =>
    runToEnd([...enter, ...argv], { env: environment, timeoutMs: commandTimeoutMs, cwd: folder });
  const must = async (argv: string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await run(argv);
    if (exitCode !== 0) throw new Error(`${argv.slice(0, 6).join(' ')} ended with ${exitCode}: ${stderr}${stdout}`);
    return stdout;
  };
  const server = `https://${address}:${apiPort}`;
  const pki = join(folder, 'pki');
  await writeCertificates(pki, server, address);
  writeConfigs(folder, { address, group });
  const kubectl = (...args: string[]) => must(['kubectl', '--kubeconfig', join(pki, 'admin.conf'), ...args]);
  const begin = (name: string, ...args: string[]) => void spawn(name, [...enter, name, ...args]);
  begin('etcd', ...etcdOptions(folder));
  begin('kube-apiserver', ...apiServerOptions(pki, address));
  begin('containerd', '--config', join(folder, 'containerd.toml'));
  const databaseUrl = await startPostgres(folder, address, { enter, must });
  await waitFor(
    'the API server',
    async () =>
      (await run(['kubectl', '--kubeconfig', join(pki, 'admin.conf'), 'get', '--raw', '/readyz'])).exitCode === 0,
    startTimeoutMs,
  );
  const config = join(pki, 'admin.conf');
  begin(
    'kube-controller-manager',
    `--kubeconfig=${config}`,
    `--service-account-private-key-file=${pki}/sa.key`,
    `--root-ca-file=${pki}/ca.crt`,
    '--use-service-account-credentials',
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
  );
  begin('kube-scheduler', `--kubeconfig=${config}`, '--leader-elect=false', '--bind-address=127.0.0.1');
  const ctr = ['ctr', '--address', join(folder, 'containerd.sock'), '--namespace', 'k8s.io'];
  await waitFor('containerd', async () => (await run([...ctr, 'version'])).exitCode === 0, startTimeoutMs);
  for (const archive of [await writePauseImage(folder), image]) await must([...ctr, 'images', 'import', archive]);
  begin(
    'kubelet',
    `--config=${folder}/kubelet.yaml`,
    `--kubeconfig=${pki}/kubelet.conf`,
    '--hostname-override=machine',
    `--root-dir=${folder}/kubelet`,
    `--node-ip=${address}`,
  );
  begin('kube-proxy', `--config=${folder}/proxy.yaml`);
  spawn('names', [...enter, process.execPath, join(import.meta.dir, 'names.ts'), pki, server, address]);
  await waitFor(
    'the machine to be ready',
    async () => (await kubectl('get', 'nodes')).includes(' Ready'),
    startTimeoutMs,
  );
  const disposal = started.move();
  return {
    folder,
    address,
    enter,
    databaseUrl,
    kubectl,
    helm: (...args) => must([helm, '--kubeconfig', config, ...args]),
    logs: () =>
      readdirSync(logs)
        .map(name => `== ${name}\n${readFileSync(join(logs, name), 'utf8').slice(-3000)}`)
        .join('\n'),
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

/** What makes the machine's mounts, says so, and holds its namespaces. */
function setUp(folder: string): string {
  const fakes = Object.entries(kernelDefaults).map(([file, value]) => {
    const fake = join(folder, file.replaceAll('/', '_'));
    writeFileSync(fake, `${value}\n`);
    return `mount --bind ${fake} /proc/sys/${file}`;
  });
  return [
    'set -e',
    'mkdir "$1/registry" "$1/kubelet"',
    'mount --bind /run/atoll "$1/registry"',
    ...inMemory.map(path => `mount -t tmpfs lab ${path}`),
    // All installations of the host number themselves there; what is mounted in it stays in this namespace.
    'mkdir /run/atoll',
    'mount --move "$1/registry" /run/atoll',
    'mount --make-shared /run/atoll',
    'mount --bind "$1/kubelet" "$1/kubelet"',
    'mount --make-shared "$1/kubelet"',
    ...fakes,
    'touch "$1/ready"',
    'exec sleep infinity',
  ].join('\n');
}

const etcdOptions = (folder: string) => [
  `--data-dir=${folder}/etcd`,
  '--listen-client-urls=http://127.0.0.1:12379',
  '--advertise-client-urls=http://127.0.0.1:12379',
  '--listen-peer-urls=http://127.0.0.1:12380',
  '--unsafe-no-fsync',
];

const apiServerOptions = (pki: string, address: string) => [
  '--etcd-servers=http://127.0.0.1:12379',
  '--bind-address=0.0.0.0',
  `--advertise-address=${address}`,
  `--secure-port=${apiPort}`,
  `--client-ca-file=${pki}/ca.crt`,
  `--tls-cert-file=${pki}/api.crt`,
  `--tls-private-key-file=${pki}/api.key`,
  `--kubelet-client-certificate=${pki}/admin.crt`,
  `--kubelet-client-key=${pki}/admin.key`,
  `--kubelet-certificate-authority=${pki}/ca.crt`,
  '--service-account-issuer=https://kubernetes.default.svc',
  `--service-account-key-file=${pki}/sa.pub`,
  `--service-account-signing-key-file=${pki}/sa.key`,
  '--service-cluster-ip-range=10.96.0.0/16',
  '--authorization-mode=Node,RBAC',
  '--allow-privileged=true',
  '--kubelet-preferred-address-types=InternalIP',
];

function writeConfigs(folder: string, { address, group }: { address: string; group: string }): void {
  const write = (name: string, value: object) => writeFileSync(join(folder, name), JSON.stringify(value));
  const pki = join(folder, 'pki');
  writeFileSync(join(folder, 'resolv.conf'), `nameserver ${address}\n`);
  write('kubelet.yaml', {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${group}`,
    cgroupsPerQOS: true,
    enforceNodeAllocatable: [],
    // It would else write the kernel's settings.
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
    tlsCertFile: `${pki}/kubelet.crt`,
    tlsPrivateKeyFile: `${pki}/kubelet.key`,
    address,
    readOnlyPort: 0,
    healthzPort: 0,
    clusterDomain: 'cluster.local',
    clusterDNS: [address],
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
    hostnameOverride: 'machine',
    clientConnection: { kubeconfig: `${pki}/admin.conf` },
    clusterCIDR: '10.98.0.0/24',
    // Those settings of the kernel are the host's.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    healthzBindAddress: '127.0.0.1:10256',
    metricsBindAddress: '127.0.0.1:10249',
  });
  mkdirSync(join(folder, 'cni'));
  const ipam = {
    type: 'host-local',
    subnet: '10.98.0.0/24',
    dataDir: `${folder}/addresses`,
    routes: [{ dst: '0.0.0.0/0' }],
  };
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

/** A PostgreSQL on the machine, for who reaches its network. It ends with everything there. */
async function startPostgres(
  folder: string,
  address: string,
  { enter, must }: { enter: string[]; must(argv: string[]): Promise<string> },
): Promise<string> {
  const programs = postgresPrograms();
  if (programs === null) throw new Error('there is no PostgreSQL');
  const data = join(folder, 'database');
  mkdirSync(data);
  await must(['chmod', '711', folder]);
  await must(['chown', 'postgres', data]);
  const asPostgres = ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'];
  await must([
    ...asPostgres,
    join(programs, 'initdb'),
    '-D',
    data,
    '-A',
    'trust',
    '-U',
    'atoll',
    '--no-sync',
    '--locale=C.UTF-8',
  ]);
  writeFileSync(join(data, 'pg_hba.conf'), 'host all all 0.0.0.0/0 trust\n');
  const options = ['-c', `listen_addresses=${address}`, '-c', 'fsync=off', '-c', 'unix_socket_directories='];
  const log = openSync(join(folder, 'logs/postgres'), 'a');
  Bun.spawn([...enter, ...asPostgres, join(programs, 'postgres'), '-D', data, ...options], {
    stdin: 'ignore',
    stdout: log,
    stderr: log,
    cwd: '/',
  });
  const isReady = () => Bun.spawnSync([...enter, join(programs, 'pg_isready'), '-h', address]).exitCode === 0;
  await waitFor('PostgreSQL', isReady, startTimeoutMs);
  return `postgres://atoll@${address}/postgres`;
}

/** The control group of all pods, in each hierarchy that the machine has. */
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

/** Ends every process that is in the namespaces of the machine: with the last one these and their mounts are gone. */
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
    // Its holder last: others are found by its namespaces.
    kill(left.filter(pid => pid !== holder));
    return left.every(pid => pid === holder);
  });
  kill([holder]);
}
