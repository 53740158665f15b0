import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { localVariables } from '../../src/cli/operator/welcome.ts';
import { killGroup, runToEnd, start, textOf, waitFor } from './process.ts';

export const repository = fileURLToPath(new URL('../..', import.meta.url));
const checkoutProgram = join(repository, 'bin/atoll');

/** Longest time to the first answer: the base template may have to be made. */
const startTimeoutMs = 10 * 60_000;

/** What `atoll up --json` prints once the platform serves. */
export type Ready = {
  url: string;
  tls?: { url: string; authorityFile: string | null; domain: string };
  apiKey: string;
  domain: string;
  dataDir: string;
  building: string[];
  /** A link that signs in at the dashboard; null if the dashboard is not built. */
  dashboard: string | null;
  pid: number;
};

export type TestPlatform = AsyncDisposable & {
  ready: Ready;
  /** The environment for a program that uses an SDK or the command line. */
  env: NodeJS.ProcessEnv;
  /** Sends a request to the one port, with the API key. */
  api(method: string, path: string, body?: unknown): Promise<Response>;
  /** Ends the platform as Ctrl-C does; sandboxes stay. */
  stop(): Promise<void>;
  /** Ends the platform like a crash. */
  kill9(): Promise<void>;
  /** Restarts it on its data directory and port. */
  restart(): Promise<void>;
  /** The present process of the supervisor. Throws if none runs. */
  pid(): number;
  /** Its standard error so far. */
  log(): string;
};

/**
 * Starts a whole platform on its own data directory and a free port. Disposing of it ends it, removes its sandboxes and
 * deletes the directory. `program`: its command line. `env` adds settings; by default no template but `base` is built,
 * and there are four standby sandboxes, because the machine is shared with other tests.
 */
export async function startPlatform(
  env: Record<string, string> = {},
  program = checkoutProgram,
): Promise<TestPlatform> {
  const given = process.env[sharedVariable];
  if (given !== undefined) return sharedPlatform(JSON.parse(given) as Ready);
  const dataDir = env['ATOLL_DATA_DIR'] ?? (await mkdtemp(join(tmpdir(), 'atoll-e2e-')));
  const settings: NodeJS.ProcessEnv = {
    ...process.env,
    ATOLL_PORT: '0',
    ATOLL_DATA_DIR: dataDir,
    ATOLL_TEMPLATES: 'none',
    ATOLL_POOL_SIZE: process.env['ATOLL_POOL_SIZE'] ?? '4',
    ...env,
  };
  const first = await launch(program, settings).catch(async error => {
    await rm(dataDir, { recursive: true, force: true });
    throw error;
  });
  return platformOf(first, program, settings);
}

/** `Ready` of a platform that already runs, e.g. that of a cluster: tests without settings of their own run on it. */
export const sharedVariable = 'ATOLL_TEST_PLATFORM';

/** A platform that somebody else starts and ends. */
function sharedPlatform(ready: Ready): TestPlatform {
  const others = () => {
    throw new Error('this test ends or restarts its platform, and this one is shared');
  };
  return {
    ready,
    env: { ...process.env, ...localVariables(ready) },
    api: apiOf(ready),
    stop: others,
    kill9: others,
    restart: others,
    pid: others,
    log: () => '',
    [Symbol.asyncDispose]: async () => {},
  };
}

const apiOf =
  (ready: Ready): TestPlatform['api'] =>
  (method, path, body) =>
    fetch(new URL(path, ready.url), {
      method,
      headers: { 'X-API-Key': ready.apiKey, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });

type Launched = { child: ChildProcess; ready: Ready; log: () => string };

async function launch(atoll: string, env: NodeJS.ProcessEnv): Promise<Launched> {
  const child = start([atoll, 'up', '--json'], { env, cwd: repository });
  const output = textOf(child, 'stdout');
  const log = textOf(child, 'stderr');
  child.stdin?.end();
  const ready = await waitFor(
    'the platform to serve',
    () => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`the platform ended (${child.exitCode ?? child.signalCode}):\n${log()}`);
      const end = output().indexOf('\n');
      return end >= 0 && (JSON.parse(output().slice(0, end)) as Ready);
    },
    startTimeoutMs,
  ).catch(error => {
    killGroup(child, 'SIGKILL');
    throw error;
  });
  return { child, ready, log };
}

function platformOf(first: Launched, atoll: string, settings: NodeJS.ProcessEnv): TestPlatform {
  let current: Launched | undefined = first;
  const logs = [first.log];
  // The port stays the same over restarts: clients keep the address.
  const env = { ...settings, ATOLL_PORT: new URL(first.ready.url).port };
  const end = async (signal: NodeJS.Signals) => {
    const child = current?.child;
    current = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    child.kill(signal);
    await closed;
  };
  const { ready } = first;
  return {
    ready,
    env: {
      ...env,
      // What a start prints for clients on this machine.
      ...localVariables(ready),
    },
    api: apiOf(ready),
    stop: () => end('SIGINT'),
    kill9: () => end('SIGKILL'),
    async restart() {
      current = await launch(atoll, env);
      logs.push(current.log);
    },
    pid() {
      if (current?.child.pid === undefined) throw new Error('the platform does not run');
      return current.child.pid;
    },
    log: () => logs.map(log => log()).join(''),
    async [Symbol.asyncDispose]() {
      await end('SIGTERM');
      // This checkout's, whatever release the platform is: an older one may not know the option.
      const down = await runToEnd([checkoutProgram, 'down', '--all'], { env, cwd: repository });
      await rm(ready.dataDir, { recursive: true, force: true });
      if (down.exitCode !== 0) throw new Error(`atoll down failed:\n${down.stderr}`);
    },
  };
}
