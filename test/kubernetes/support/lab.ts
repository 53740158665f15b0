import { mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeLan } from '../../cluster/support/network.ts';
import { postgresPrograms } from '../../api/postgres.ts';
import { waitFor } from '../../support/process.ts';
import { writeCertificates, writeKubeletCertificate } from './certificates.ts';
import { writePauseImage } from './images.ts';
import { joinNetworks, type Machine, startKubelet, startMachine, startTimeoutMs, type StoredImage } from './machine.ts';
import { ensurePrograms } from './programs.ts';

// A whole Kubernetes: etcd and the control plane on a first machine, and a kubelet with containerd on each.

const apiPort = 16_443;

/** A running Kubernetes. Disposing of it ends it and everything that runs in it. */
export type Lab = AsyncDisposable & {
  folder: string;
  /** The first machine, which exists from the beginning: `machine`. */
  machine: Machine;
  machines: Machine[];
  databaseUrl: string;
  kubectl(...args: string[]): Promise<string>;
  helm(...args: string[]): Promise<string>;
  /** Adds one machine to Kubernetes, and waits until it is ready. */
  add(name: string): Promise<Machine>;
  /** Adds this many pretended machines: whatever is placed there is reported as running at once. */
  pretend(count: number): Promise<void>;
  /** Ends of the logs of its programs. */
  logs(): string;
};

/** Starts one with the images of releases in its machines' stores. `dataDir`: that of the nodes that will run there. */
export async function startLab(releases: StoredImage[], dataDir: (folder: string) => string): Promise<Lab> {
  const { folder: programs, helm, kwok } = await ensurePrograms();
  await using started = new AsyncDisposableStack();
  const folder = mkdtempSync('/var/tmp/atoll-kube-');
  started.defer(() => rmSync(folder, { recursive: true, force: true }));
  const lan = started.use(await makeLan());
  const place = { folder, programs, dataDir: dataDir(folder) };
  const machine = started.use(await startMachine({ ...place, name: 'machine', index: 0, lan: await lan.add('k') }));
  const machines = [machine];
  const server = `https://${machine.address}:${apiPort}`;
  const pki = join(folder, 'pki');
  await writeCertificates(pki, server, machine.address);
  const config = join(pki, 'admin.conf');
  const kubectl = (...args: string[]) => machine.must(['kubectl', '--kubeconfig', config, ...args]);
  const images = [{ archive: await writePauseImage(folder) }, ...releases];
  machine.begin('etcd', 'etcd', ...etcdOptions(folder));
  machine.begin('kube-apiserver', 'kube-apiserver', ...apiServerOptions(pki, machine.address));
  const databaseUrl = await startPostgres(folder, machine);
  const isReady = async () =>
    kubectl('get', '--raw', '/readyz').then(
      () => true,
      () => false,
    );
  await waitFor('the API server', isReady, startTimeoutMs);
  const manager = [`--kubeconfig=${config}`, '--leader-elect=false', '--bind-address=127.0.0.1'];
  machine.begin('kube-controller-manager', 'kube-controller-manager', ...manager, ...managerOptions(pki));
  machine.begin('kube-scheduler', 'kube-scheduler', ...manager);
  machine.begin('names', process.execPath, join(import.meta.dir, 'names.ts'), pki, server, machine.address);
  const joined = async (joining: Machine) => {
    await writeKubeletCertificate(pki, server, joining);
    await startKubelet(joining, { pki, dns: machine.address, images });
    const says = () => kubectl('get', 'nodes', joining.name, '--ignore-not-found');
    await waitFor(`${joining.name} to be ready`, async () => (await says()).includes(' Ready'), startTimeoutMs);
  };
  await joined(machine);
  const disposal = started.move();
  return {
    folder,
    machine,
    machines,
    databaseUrl,
    kubectl,
    helm: (...args) => machine.must([helm, '--kubeconfig', config, ...args]),
    async add(name) {
      const index = machines.length;
      const added = disposal.use(await startMachine({ ...place, name, index, lan: await lan.add(`k${index}`) }));
      for (const other of machines) await joinNetworks(other, added);
      machines.push(added);
      await joined(added);
      return added;
    },
    async pretend(count) {
      machine.begin(
        'kwok',
        join(kwok, 'kwok'),
        `--config=${join(kwok, 'stages.yaml')}`,
        `--kubeconfig=${config}`,
        '--node-lease-duration-seconds=40',
        `--manage-nodes-with-annotation-selector=${pretended}=fake`,
      );
      const text = Array.from({ length: count }, (_, index) => JSON.stringify(pretendedNode(`fake-${index}`)));
      const file = join(folder, 'pretended.json');
      writeFileSync(file, text.join('\n'));
      await kubectl('apply', '--filename', file);
    },
    logs: () => machines.map(({ logs }) => logs()).join('\n'),
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

const pretended = 'kwok.x-k8s.io/node';

/** A machine that kwok answers for. */
const pretendedNode = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name,
    annotations: { [pretended]: 'fake' },
    labels: { pretended: 'true', 'kubernetes.io/hostname': name },
  },
  // Pods that can't run there must not be placed there, such as the Job that waits for the end.
  spec: { taints: [{ key: 'pretended', effect: 'NoSchedule' }] },
  status: {
    allocatable: { cpu: '32', memory: '256Gi', pods: '110' },
    capacity: { cpu: '32', memory: '256Gi', pods: '110' },
  },
});

const managerOptions = (pki: string) => [
  `--service-account-private-key-file=${pki}/sa.key`,
  `--root-ca-file=${pki}/ca.crt`,
  '--use-service-account-credentials',
];

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

/** A PostgreSQL on the machine, for whoever reaches its network. It ends with everything there. */
async function startPostgres(folder: string, { address, enter, must }: Machine): Promise<string> {
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
  const log = openSync(join(folder, 'machine/logs/postgres'), 'a');
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
