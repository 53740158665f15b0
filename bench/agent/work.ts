import { closeSync, mkdirSync, openSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { attach, finish, outputUntil, start, startedPid, type ProcessEvent } from '../../test/agent/support/process.ts';
import { envelope, stream, unary, type RpcStream } from '../../test/agent/support/rpc.ts';
import type { TestAgent } from '../../test/agent/support/test-agent.ts';
import { cpuMsOf } from '../measure/processes.ts';
import { summarize, timeEach, type Summary } from '../measure/statistics.ts';
import { load, requestBytes } from './load.ts';

export const bigBytes = 1 << 30;

export type Rate = { megabytesPerSecond: number; agentCpuMs: number };

const megabytesPerSecond = (bytes: number, fromMs: number) => bytes / 1e6 / ((performance.now() - fromMs) / 1000);

/** From the start of `/bin/true` to the end of its stream, one at a time or several. */
export function startTrue(agent: TestAgent, connections: number, count: number): ReturnType<typeof load> {
  const body = envelope({ process: { cmd: '/bin/true' }, stdin: false });
  return load(
    agent.port,
    requestBytes(agent.port, '/process.Process/Start', 'application/connect+json', body),
    connections,
    count,
  );
}

export function listProcesses(agent: TestAgent, connections: number, count: number): ReturnType<typeof load> {
  return load(
    agent.port,
    requestBytes(agent.port, '/process.Process/List', 'application/json', Buffer.from('{}')),
    connections,
    count,
  );
}

/** From a key sent to a program in a terminal to its echo in the stream. */
export async function terminalEcho(agent: TestAgent, count: number): Promise<Summary> {
  await using events = await start(agent, { process: { cmd: '/bin/cat' }, pty: { size: { cols: 80, rows: 24 } } });
  const pid = await startedPid(events);
  const key = requestBytes(
    agent.port,
    '/process.Process/SendInput',
    'application/json',
    Buffer.from(JSON.stringify({ process: { pid }, input: { pty: 'eA==' } })),
  );
  const socket = await Bun.connect({ hostname: '127.0.0.1', port: agent.port, socket: { data() {} } });
  const times = await timeEach(count, async () => {
    socket.write(key);
    await outputUntil(events, 'x');
  });
  socket.terminate();
  await unary(agent, 'process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' });
  await finish(events);
  return summarize(times);
}

/** `head -c` of zeros through the stream of its stdout: bytes per second that the client gets, before base64. */
export async function stdoutThroughput(agent: TestAgent, bytes: number): Promise<Rate> {
  const [cpu, fromMs] = [cpuMsOf(agent.agentPid()), performance.now()];
  const response = await fetch(`${agent.url}/process.Process/Start`, {
    method: 'POST',
    headers: { 'content-type': 'application/connect+json' },
    body: envelope({ process: { cmd: '/usr/bin/head', args: ['-c', String(bytes), '/dev/zero'] }, stdin: false }),
  });
  let got = 0;
  for await (const chunk of response.body ?? []) got += chunk.length;
  if (got < (bytes * 4) / 3) throw new Error(`only ${got} bytes came for ${bytes}`);
  return { megabytesPerSecond: megabytesPerSecond(bytes, fromMs), agentCpuMs: cpuMsOf(agent.agentPid()) - cpu };
}

/**
 * Processes that are started all at once and then live together; answers how long until all run, and until all are
 * gone.
 */
export async function manyProcesses(agent: TestAgent, count: number): Promise<{ startedMs: number; endedMs: number }> {
  const fromMs = performance.now();
  const running: { events: RpcStream<ProcessEvent>; pid: number }[] = [];
  for (let at = 0; at < count; at += 50) {
    const batch = Array.from({ length: Math.min(50, count - at) }, async () => {
      const events = await start(agent, { process: { cmd: '/bin/sleep', args: ['1000'] } });
      return { events, pid: await startedPid(events) };
    });
    running.push(...(await Promise.all(batch)));
  }
  const startedMs = performance.now() - fromMs;
  const listed = await unary(agent, 'process.Process/List', {});
  if ((listed.body['processes'] as unknown[]).length < count) throw new Error('not all processes are listed');
  const killedAt = performance.now();
  for (const { pid } of running)
    await unary(agent, 'process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' });
  for (const { events } of running) await finish(events);
  return { startedMs, endedMs: performance.now() - killedAt };
}

/** One process that writes, and `count` clients that all get everything. */
export async function manySubscribers(agent: TestAgent, count: number, bytes: number): Promise<Rate> {
  await using starter = await start(agent, {
    process: { cmd: '/bin/sh', args: ['-c', `read go; head -c ${bytes} /dev/zero`] },
    stdin: true,
  });
  const pid = await startedPid(starter);
  const attached = await Promise.all(Array.from({ length: count }, () => attach(agent, { pid })));
  for (const events of attached) await startedPid(events);
  const [cpu, fromMs] = [cpuMsOf(agent.agentPid()), performance.now()];
  await unary(agent, 'process.Process/SendInput', {
    process: { pid },
    input: { stdin: Buffer.from('go\n').toString('base64') },
  });
  const ends = await Promise.all([starter, ...attached].map(async events => (await finish(events)).stdout.length));
  if (ends.some(length => length !== bytes)) throw new Error(`a subscriber got ${Math.min(...ends)} of ${bytes} bytes`);
  return {
    megabytesPerSecond: megabytesPerSecond(bytes * (count + 1), fromMs),
    agentCpuMs: cpuMsOf(agent.agentPid()) - cpu,
  };
}

/**
 * A tree of `files` files, a hundred per directory, watched as a whole: the time to arm, and from a write to its event.
 */
export async function watchTree(
  agent: TestAgent,
  files: number,
  events: number,
): Promise<{ armMs: number; latency: Summary }> {
  const tree = '/tmp/watched';
  for (let index = 0; index < files; index++) {
    const folder = agent.path(`${tree}/${Math.floor(index / 100)}`);
    if (index % 100 === 0) mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `file-${index}`), '');
  }
  const fromMs = performance.now();
  await using watch = await stream<{ start?: object; filesystem?: { name: string } }>(
    agent,
    'filesystem.Filesystem/WatchDir',
    { path: tree, recursive: true },
  );
  if (!(await watch.next())?.start) throw new Error(`the watch did not start: ${watch.error?.message}`);
  const armMs = performance.now() - fromMs;
  const times = await timeEach(events, async index => {
    const name = `${index % Math.max(1, Math.floor(files / 100))}/new-${index}`;
    closeSync(openSync(agent.path(`${tree}/${name}`), 'w'));
    while ((await watch.next())?.filesystem?.name !== name);
  });
  return { armMs, latency: summarize(times) };
}

/** Where the host writes the file for downloads. */
export function makeBigFile(agent: TestAgent, path: string): void {
  const fd = openSync(agent.path(path), 'w');
  const piece = new Uint8Array(1 << 20).fill(0x61);
  for (let at = 0; at < bigBytes; at += piece.length) writeSync(fd, piece);
  closeSync(fd);
}

export async function download(url: string, cpu: () => number): Promise<Rate> {
  const [cpuBefore, fromMs] = [cpu(), performance.now()];
  await curl(['-o', '/dev/null', url]);
  return { megabytesPerSecond: megabytesPerSecond(bigBytes, fromMs), agentCpuMs: cpu() - cpuBefore };
}

export async function upload(url: string, cpu: () => number, how: string[]): Promise<Rate> {
  const [cpuBefore, fromMs] = [cpu(), performance.now()];
  await curl([...how, '-o', '/dev/null', url]);
  return { megabytesPerSecond: megabytesPerSecond(bigBytes, fromMs), agentCpuMs: cpu() - cpuBefore };
}

/** Not fetch, which would cost the two processors more than what is measured. */
export async function curl(args: string[]): Promise<void> {
  const child = Bun.spawn(['curl', '--silent', '--show-error', '--fail', ...args], {
    stdout: 'ignore',
    stderr: 'pipe',
  });
  const text = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`curl: ${text.trim()}`);
}

/** A sparse file on the host, of the uploaded size. */
export function makeSparseFile(path: string, bytes = bigBytes): string {
  writeFileSync(path, '');
  truncateSync(path, bytes);
  return path;
}
