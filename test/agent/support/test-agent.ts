import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { buildAgent } from '../../../scripts/setup/agent.mjs';
import { controlTokenHeader, type AgentInit } from '../../../src/protocol/agent.ts';

// Runs on Bun and on Node.js, where the published clients are tested.
const here = dirname(fileURLToPath(import.meta.url));
const repository = join(here, '../../..');
const builtAgent = join(repository, 'dist/agent');
const startTimeoutMs = 15_000;

export type AgentOptions = {
  /**
   * `host`: the host's own tree, where writes leave no trace. `empty`: nothing at all. Otherwise a folder that holds a
   * tree.
   */
  root?: 'host' | 'empty' | (string & {});
  /** Sent to `/init` once it serves; null: the agent stays as it started. */
  init?: AgentInit | null;
  /** A cgroup folder below /sys/fs/cgroup in which it runs, and which it sees as its own. */
  cgroup?: string;
};

/** The compiled agent with its init, as process 1 of its own namespaces. Disposal ends all of it. */
export type TestAgent = AsyncDisposable & {
  readonly url: string;
  readonly port: number;
  readonly controlToken: string;
  /** PID of init, on the host. */
  readonly initPid: number;
  /** PID of the agent, on the host; it changes after the agent was killed. */
  agentPid(): number;
  /** The host's path of a path in the agent's root file system. */
  path(inside: string): string;
  init(body: AgentInit): Promise<Response>;
  /** Resolves when `/health` answers. */
  healthy(): Promise<void>;
};

/** The environment and user that most tests want. */
export const usualInit: AgentInit = { envVars: { E2B_SANDBOX: 'true' }, defaultUser: 'root' };

export async function startAgent({ root = 'host', init = usualInit, cgroup }: AgentOptions = {}): Promise<TestAgent> {
  await buildAgent(repository);
  const folder = mkdtempSync(join(tmpdir(), 'atoll-agent-'));
  const enter = join(folder, 'enter-root');
  execFileSync('musl-gcc', ['-static', '-o', enter, join(here, 'enter-root.c')]);
  const mounts = mkdtempSync(join(folder, 'mounts-'));
  const port = await freePort();
  const controlToken = crypto.randomUUID();
  const child = spawn(
    'unshare',
    [
      '--mount',
      '--pid',
      '--fork',
      '--kill-child',
      '--propagation',
      'private',
      'sh',
      join(here, 'namespace.sh'),
      enter,
      mounts,
      builtAgent,
      root,
      cgroup ?? '-',
      '/.agent/init',
      '--port',
      String(port),
    ],
    { stdio: ['pipe', 'ignore', 'pipe'] },
  );
  const ended = once(child, 'exit');
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  child.stdin.end(`${controlToken}\n`);
  const pid = child.pid ?? 0;
  const url = `http://127.0.0.1:${port}`;
  const agent: TestAgent = {
    url,
    port,
    controlToken,
    get initPid() {
      return childOf(pid);
    },
    agentPid: () => childOf(childOf(pid), 'agent'),
    path: inside => join('/proc', String(childOf(pid)), 'root', inside),
    init: body =>
      fetch(`${url}/init`, {
        method: 'POST',
        headers: { [controlTokenHeader]: controlToken, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    async healthy() {
      const deadline = Date.now() + startTimeoutMs;
      while (
        !(await fetch(`${url}/health`).then(
          response => response.status === 204,
          () => false,
        ))
      ) {
        if (child.exitCode !== null) throw new Error(`the agent did not start: ${complaint}`);
        if (Date.now() > deadline) throw new Error('the agent did not start in time');
        await sleep(5);
      }
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
      // The namespaces end with their last process, and their mounts with them.
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    await agent.healthy();
    if (init) await expectStatus(await agent.init(init), 204);
    return agent;
  } catch (error) {
    await agent[Symbol.asyncDispose]();
    throw error;
  }
}

async function expectStatus(response: Response, status: number): Promise<void> {
  if (response.status !== status)
    throw new Error(`${response.url} answered ${response.status}: ${await response.text()}`);
}

/** The first child, or the one called `name`; 0: there is none. */
function childOf(pid: number, name?: string): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  return Number(children.find(child => name === undefined || nameOf(child) === name) ?? 0);
}

function nameOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return ''; // ended meanwhile
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>(resolve => server.listen(0, '0.0.0.0', resolve));
  const address = server.address();
  await new Promise(resolve => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
