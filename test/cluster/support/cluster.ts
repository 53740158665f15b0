import { SQL } from 'bun';
import { Sandbox, type SandboxOpts } from 'e2b';
import { copyFileSync, mkdtempSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf, systemCodeOf } from '../../../src/base/error.ts';
import { readMachineIdentity } from '../../../src/bin/cluster/join.ts';
import type { NodeIdentity } from '../../../src/wire/tls/listen-tls.ts';
import { PostgresCluster } from '../../api/postgres.ts';
import { mountDisk } from './disk.ts';
import { makeLan, type LanMachine } from './network.ts';

const atoll = join(import.meta.dir, '../../../bin/atoll');
/** The base template may have to be made. */
const startTimeoutMs = 10 * 60_000;

/** A process of the cluster that runs in the foreground. */
type Running = { child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>; first: Promise<string>; log(): string };

/** A control process. */
type Control = {
  url: string;
  apiKey: string;
  /** For the SDKs: names of sandboxes are below it. */
  domain: string;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  kill9(): Promise<void>;
  /** Ends it in order. */
  end(): Promise<void>;
  /** Restarts it, optionally with the command line of another checkout. */
  restart(program?: string): Promise<void>;
  /** Makes its processes stand still, or go on. */
  freeze(): void;
  thaw(): void;
  log(): string;
};

/** A machine that hosts sandboxes. */
type Node = {
  nodeId: string;
  /** `host:port` at which control reaches it. */
  address: string;
  /** The identity on its disk, with which it proves who it is. */
  identity(): NodeIdentity;
  /** Where it keeps its data. */
  dataDir: string;
  /** Makes its platform's processes stand still, or go on. Its sandboxes run. */
  freeze(): void;
  thaw(): void;
  cut(): Promise<void>;
  heal(): Promise<void>;
  kill9(): Promise<void>;
  /** Ends its platform in order; its sandboxes run on. */
  end(): Promise<void>;
  /** Restarts it, optionally with the command line of another checkout. */
  restart(program?: string): Promise<void>;
  /** Ends it and everything that runs there, and removes its disk: it never comes back. */
  destroy(): Promise<void>;
  log(): string;
};

/** A cluster: PostgreSQL, control processes on this machine, and machines with networks of their own. */
export type Cluster = AsyncDisposable & {
  controls: Control[];
  nodes: Node[];
  /** Control's database. */
  database: Pick<PostgresCluster, 'crash' | 'stop' | 'resume'>;
  invite(): Promise<string>;
  /** A request by the operator. */
  admin(control: number, method: string, path: string, body?: unknown): Promise<Response>;
  /** Queries the database. */
  query<Row>(text: string): Promise<Row[]>;
  /** The machine that a sandbox is on, according to the database. */
  homeOf(sandboxId: string): Promise<Node>;
  atoll(control: number, ...args: string[]): Promise<{ code: number; out: string; err: string }>;
  /** The command line of another checkout. */
  atollOf(program: string, control: number, ...args: string[]): Promise<{ code: number; out: string; err: string }>;
};

/** How large a cluster is, and what its processes run on. */
type ClusterSize = {
  controls: number;
  nodes: number;
  /** Prefix for the command line of a process, by its name: `control0`, `node0`. */
  enter?: (name: string) => string[];
  /** Size of each machine's own disk. Absent: they share this machine's. */
  nodeDiskMiB?: number;
};

/** A database that a test manages itself. `present`: URL of the server that accepts changes. */
type OwnDatabase = { url: string; present(): string };

/** Only a guard against tests that would never end. */
const untilMs = 240_000;

/** Waits until something holds, as long as the test's own time limit allows. */
export async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  for (const deadline = performance.now() + untilMs; !(await holds());) {
    if (performance.now() > deadline) throw new Error(`it did not come to this: ${what}`);
    await Bun.sleep(50);
  }
}

/** Longer than layers take from machine to machine while everything else runs beside. */
const requestTimeoutMs = 240_000;

/** The SDK's connection to a control process. */
export function connectionTo(cluster: Cluster, number: number) {
  const { apiKey, url } = controlOf(cluster, number);
  return { apiKey, apiUrl: url, sandboxUrl: url, requestTimeoutMs };
}

/** A control process by its number. */
export function controlOf(cluster: Cluster, number: number): Control {
  const control = cluster.controls[number];
  if (!control) throw new Error(`no control ${number}`);
  return control;
}

/** A machine as operators see it. */
type NodeView = { id: string; status: string; statusChangedAt: string; sandboxCount: number };

/** The machines as a control process sees them. */
export async function nodeViews(cluster: Cluster, control = 0): Promise<NodeView[]> {
  const answer = await cluster.admin(control, 'GET', '/nodes');
  return (await answer.json()) as NodeView[];
}

/** One machine as a control process sees it. */
export async function nodeView(cluster: Cluster, { nodeId }: Node, control = 0): Promise<NodeView | undefined> {
  return (await nodeViews(cluster, control)).find(({ id }) => id === nodeId);
}

/** Waits until all machines accept sandboxes, as every control process sees it. */
export async function allReady(cluster: Cluster): Promise<void> {
  for (const control of cluster.controls.keys())
    await until('all machines are ready', async () => {
      const ready = (await nodeViews(cluster, control)).filter(({ status }) => status === 'ready');
      return ready.length === cluster.nodes.length;
    });
}

/** Brings the base template's layers to every machine, which may take longer than a create waits. */
export async function layersEverywhere(cluster: Cluster): Promise<void> {
  await allReady(cluster);
  for (const node of cluster.nodes)
    await until('a machine makes a sandbox', async () => {
      const made = await createOn(cluster, node).catch(() => undefined);
      return (await made?.kill()) ?? false;
    });
}

/** The first two machines of a cluster that was started with two or more. */
export function twoMachines({ nodes: [one, two] }: Pick<Cluster, 'nodes'>): [Node, Node] {
  if (!one || !two) throw new Error('there are no two machines');
  return [one, two];
}

/** Makes a sandbox on one machine: the others are taken out meanwhile. */
export async function createOn(
  cluster: Cluster,
  node: Node,
  options: SandboxOpts = {},
  template = 'base',
): Promise<Sandbox> {
  const set = (status: string) => {
    const others = cluster.nodes.filter(other => other !== node);
    return Promise.all(others.map(({ nodeId }) => cluster.admin(0, 'POST', `/nodes/${nodeId}`, { status })));
  };
  await set('standby');
  return Sandbox.create(template, { ...connectionTo(cluster, 0), ...options }).finally(() => set('ready'));
}

/**
 * Starts a cluster. `env`: settings of all its processes; `forControl`: those of control only, made once the address is
 * known at which machines reach this side.
 */
export async function startCluster(
  programs: string,
  size: ClusterSize,
  env: Record<string, string> = {},
  forControl: (hostAddress: string) => Promise<Record<string, string>> = async () => ({}),
  database?: OwnDatabase,
): Promise<Cluster> {
  try {
    return await start(programs, size, env, forControl, database);
  } catch (error) {
    if (!(error instanceof SuppressedError)) throw error;
    // Only the first one says why.
    throw new Error(messageOf(error), { cause: error });
  }
}

async function start(
  programs: string,
  size: ClusterSize,
  env: Record<string, string>,
  forControl: (hostAddress: string) => Promise<Record<string, string>>,
  own: OwnDatabase | undefined,
): Promise<Cluster> {
  await using started = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'atoll-cluster-'));
  started.defer(() => rmSync(folder, { recursive: true, force: true }));
  const postgres = started.use(await PostgresCluster.start(programs));
  const database = await postgres.newDatabase();
  const databaseUrl = own?.url ?? (database.kind === 'postgres' ? database.url : '');
  const query = async <Row>(text: string) => {
    const sql = new SQL(own?.present() ?? databaseUrl, { max: 1 });
    try {
      return (await sql.unsafe(text)) as Row[];
    } finally {
      await sql.close();
    }
  };
  const lan = started.use(await makeLan());
  const controlEnv = await forControl(lan.hostAddress);
  const environment = (dataDir: string, own: Record<string, string>) => ({
    ...(process.env as Record<string, string>),
    ATOLL_DATA_DIR: dataDir,
    ATOLL_POOL_SIZE: '1',
    ATOLL_TEMPLATES: 'none',
    ...env,
    ...own,
  });
  const environments = Array.from({ length: size.controls }, (_, number) =>
    environment(join(folder, `control${number}`), { ...controlEnv, ATOLL_PORT: '0', ATOLL_DATABASE_URL: databaseUrl }),
  );
  const nodeDir = (number: number) => join(folder, `node${number}`, size.nodeDiskMiB === undefined ? '' : 'data');
  for (let number = 0; size.nodeDiskMiB !== undefined && number < size.nodes; number++)
    started.use(await mountDisk(join(folder, `node${number}`), size.nodeDiskMiB));
  const enter = size.enter ?? (() => []);
  const [controlEnds, nodeEnds]: [Ends, Ends] = [[], []];
  started.defer(() => endAll(controlEnds));
  started.defer(() => endAll(nodeEnds));
  const startControlNumber = async (number: number) => {
    const dataDir = join(folder, `control${number}`);
    mkdirSync(dataDir, { mode: 0o700 });
    if (number > 0)
      for (const name of ['seed', 'admin-token']) copyFileSync(join(folder, 'control0', name), join(dataDir, name));
    return startControl(environments[number] ?? {}, enter(`control${number}`), controlEnds);
  };
  const first = await startControlNumber(0);
  const adminCall = async (...args: string[]) => runAtoll(environments[0] ?? {}, args);
  const invite = async () => (await adminCall('cluster', 'invite')).out.trim();
  const url = new URL(first.url);
  url.hostname = lan.hostAddress;
  const machines: LanMachine[] = [];
  while (machines.length < size.nodes) machines.push(await lan.add(`n${machines.length}`));
  const starting = [
    Promise.all(Array.from({ length: size.controls - 1 }, (_, number) => startControlNumber(number + 1))),
    Promise.all(
      machines.map(async (machine, number) => {
        const own = environment(nodeDir(number), { ATOLL_NODE_ADDRESS: `${machine.address}:3010` });
        const inside = { ...machine, enter: [...machine.enter, ...enter(`node${number}`)] };
        return startNode(own, inside, { control: url.href, token: await invite() }, nodeEnds);
      }),
    ),
  ] as const;
  // If one fails, the others are ended too: by then, all have begun.
  await Promise.allSettled(starting);
  const [others, nodes] = await Promise.all(starting);
  const controls = [first, ...others];
  const disposal = started.move();
  return {
    controls,
    nodes,
    database: postgres,
    invite,
    admin: async (control, method, path, body) =>
      fetch(`${controls[control]?.url}${path}`, {
        method,
        headers: {
          'X-Admin-Token': readFileSync(join(folder, 'control0', 'admin-token'), 'utf8').trim(),
          'Content-Type': 'application/json',
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    query,
    async homeOf(sandboxId) {
      const [row] = await query<{ node_id: string }>(`select node_id from sandboxes where sandbox_id = '${sandboxId}'`);
      const home = nodes.find(({ nodeId }) => nodeId === row?.node_id);
      if (!home) throw new Error(`no machine has ${sandboxId}`);
      return home;
    },
    atoll: (control, ...args) => runAtoll(environments[control] ?? {}, args),
    atollOf: (program, control, ...args) => runAtoll(environments[control] ?? {}, args, [], program),
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

/** Functions that end each process that was started. */
type Ends = (() => Promise<void>)[];

/** Runs all of them in parallel; fails if a process can't be ended. */
async function endAll(ends: Ends): Promise<void> {
  const results = await Promise.allSettled(ends.map(end => end()));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

async function startControl(env: Record<string, string>, enter: string[], begun: Ends): Promise<Control> {
  let running = begin([...enter, atoll, 'control', '--json'], { ...env, ATOLL_HOST: '0.0.0.0' });
  begun.push(() => stop(running));
  let ready = JSON.parse(await running.first) as { url: string; apiKey: string; domain: string };
  const port = new URL(ready.url).port;
  return {
    get url() {
      return `http://127.0.0.1:${port}`;
    },
    get apiKey() {
      return ready.apiKey;
    },
    domain: ready.domain,
    call: (method, path, body, headers) =>
      fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { 'X-API-Key': ready.apiKey, 'Content-Type': 'application/json', ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    kill9: () => killed(running),
    freeze: () => signalAll(running.child.pid, 'SIGSTOP'),
    thaw: () => signalAll(running.child.pid, 'SIGCONT'),
    end: () => stop(running),
    async restart(program = atoll) {
      running = begin([...enter, program, 'control', '--json'], { ...env, ATOLL_HOST: '0.0.0.0', ATOLL_PORT: port });
      ready = JSON.parse(await running.first) as typeof ready;
    },
    log: () => running.log(),
  };
}

async function startNode(
  env: Record<string, string>,
  machine: LanMachine,
  { control, token }: { control: string; token: string },
  begun: Ends,
): Promise<Node> {
  const command = (program: string) => [...machine.enter, program, 'node', '--json'];
  let running = begin([...command(atoll), '--control', control, '--token', token], env);
  let isDestroyed = false;
  const down = async () => {
    const { code, err } = await runAtoll(env, ['down', '--all'], machine.enter);
    if (code !== 0) throw new Error(`a machine could not be put down: ${err}`);
  };
  begun.push(async () => {
    if (isDestroyed) return;
    await stop(running);
    await down();
  });
  const { nodeId } = JSON.parse(await running.first) as { nodeId: string };
  const dataDir = env['ATOLL_DATA_DIR'] ?? '';
  return {
    nodeId,
    address: env['ATOLL_NODE_ADDRESS'] ?? '',
    identity() {
      const identity = readMachineIdentity(dataDir);
      if (!identity) throw new Error('the machine has not joined');
      return identity;
    },
    dataDir,
    freeze: () => signalAll(running.child.pid, 'SIGSTOP'),
    thaw: () => signalAll(running.child.pid, 'SIGCONT'),
    cut: machine.cut,
    heal: machine.heal,
    kill9: () => killed(running),
    async destroy() {
      await killed(running);
      isDestroyed = true;
      await down();
      rmSync(dataDir, { recursive: true, force: true });
    },
    end: () => stop(running),
    async restart(program = atoll) {
      running = begin(command(program), env);
      await running.first;
    },
    log: () => running.log(),
  };
}

function begin(command: string[], env: Record<string, string>): Running {
  const child = Bun.spawn(command, { env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  let log = '';
  const logged = (async () => {
    const decoder = new TextDecoder();
    for await (const part of child.stderr) log += decoder.decode(part, { stream: true });
  })();
  const first = (async () => {
    const decoder = new TextDecoder();
    let text = '';
    const timer = setTimeout(() => child.kill('SIGKILL'), startTimeoutMs);
    for await (const part of child.stdout) {
      text += decoder.decode(part, { stream: true });
      if (text.includes('\n')) {
        clearTimeout(timer);
        return text.slice(0, text.indexOf('\n'));
      }
    }
    await logged;
    throw new Error(`${command.join(' ')} ended before it served:\n${log}`);
  })();
  first.catch(() => {}); // awaited by who began it
  return { child, first, log: () => log };
}

/** Sends a signal to a process and all its descendants, to the first one last, because it watches the others. */
function signalAll(pid: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean);
    for (const child of children) signalAll(Number(child), signal);
    process.kill(pid, signal);
  } catch (error) {
    // A process that ends between the look and the signal needs none.
    if (!['ENOENT', 'ESRCH'].includes(systemCodeOf(error))) throw error;
  }
}

async function stop({ child }: Running): Promise<void> {
  child.kill('SIGTERM');
  await child.exited;
}

async function killed({ child }: Running): Promise<void> {
  child.kill('SIGKILL');
  await child.exited;
}

async function runAtoll(
  env: Record<string, string>,
  args: string[],
  enter: string[] = [],
  program = atoll,
): Promise<{ code: number; out: string; err: string }> {
  const child = Bun.spawn([...enter, program, ...args], { env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, out, err };
}
