import { expect, test } from 'bun:test';
import { connect } from 'node:net';
import { attach, finish, outputUntil, run, shell, start, startedPid, type ProcessEvent } from './support/process.ts';
import { envelope, unary, unaryError, type RpcStream } from './support/rpc.ts';
import { sharedAgent } from './support/shared-agent.ts';

const agent = sharedAgent();

const kill = (pid: number, signal = 'SIGNAL_SIGKILL') =>
  unary(agent, 'process.Process/SendSignal', { process: { pid }, signal });
const type = (pid: number, text: string) =>
  unary(agent, 'process.Process/SendInput', {
    process: { pid },
    input: { stdin: Buffer.from(text).toString('base64') },
  });

/** A process that waits for a line before it runs `line`. */
async function startWaiting(
  line: string,
  more: { tag?: string } = {},
): Promise<{ events: RpcStream<ProcessEvent>; pid: number; go(): Promise<unknown> }> {
  const events = await start(agent, {
    process: { cmd: '/bin/sh', args: ['-c', `read go; ${line}`] },
    stdin: true,
    ...more,
  });
  const pid = await startedPid(events);
  return { events, pid, go: () => type(pid, 'go\n') };
}

async function isListed(pid: number): Promise<boolean> {
  const { body } = await unary(agent, 'process.Process/List', {});
  return ((body['processes'] ?? []) as { pid: number }[]).some(one => one.pid === pid);
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(5);
}

test('a process outlives the connection that started it, and never waits for a reader', async () => {
  const events = await start(agent, {
    process: {
      cmd: '/bin/sh',
      args: ['-c', 'head -c 10000000 /dev/zero; echo written > /tmp/outlived; exec sleep 1000'],
    },
  });
  const pid = await startedPid(events);
  await events[Symbol.asyncDispose]();
  await until(() => Bun.file(agent.path('/tmp/outlived')).exists());
  expect(await isListed(pid)).toBe(true);
  await kill(pid);
  await until(async () => !(await isListed(pid)));
});

test('everyone who is attached gets everything from then on', async () => {
  const { events, pid, go } = await startWaiting('echo first; read go; echo second; exit 4');
  const early = await attach(agent, { pid });
  expect(await startedPid(early)).toBe(pid);
  await go();
  await outputUntil(events, 'first\n');
  const late = await attach(agent, { pid });
  await startedPid(late);
  await go();
  const [starter, one, two] = await Promise.all([finish(events), finish(early), finish(late)]);
  expect(starter.stdout).toBe('second\n');
  expect(one.stdout).toBe('first\nsecond\n');
  expect(two.stdout).toBe('second\n');
  for (const { end } of [starter, one, two]) expect(end).toMatchObject({ exitCode: 4, exited: true });
});

test('a process is found by its tag, and its end for a while too', async () => {
  const { events, pid, go } = await startWaiting('exit 5', { tag: 'by-tag' });
  const listed = await unary(agent, 'process.Process/List', {});
  expect(listed.body['processes']).toContainEqual({
    pid,
    tag: 'by-tag',
    config: { cmd: '/bin/sh', args: ['-c', 'read go; exit 5'], envs: {} },
  });
  const attached = await attach(agent, { tag: 'by-tag' });
  await startedPid(attached);
  await go();
  expect((await finish(attached)).end?.exitCode).toBe(5);
  await finish(events);
  const afterwards = await finish(await attach(agent, { tag: 'by-tag' }));
  expect(afterwards).toMatchObject({ pid, order: ['start', 'end'], end: { exitCode: 5 } });
  expect((await finish(await attach(agent, { pid }))).end?.exitCode).toBe(5);
});

test('a tag that is given again names the process that runs, not the one that ended', async () => {
  expect((await shell(agent, 'exit 1', { tag: 'again' })).end?.exitCode).toBe(1);
  const { events, go } = await startWaiting('exit 2', { tag: 'again' });
  const attached = await attach(agent, { tag: 'again' });
  await startedPid(attached);
  await go();
  expect((await finish(attached)).end?.exitCode).toBe(2);
  await finish(events);
});

test('unknown processes are not found', async () => {
  const nobody = { process: { pid: 3_999_999 } };
  expect((await finish(await attach(agent, { pid: 3_999_999 }))).error?.code).toBe('not_found');
  expect((await finish(await attach(agent, { tag: 'nothing has it' }))).error?.code).toBe('not_found');
  for (const method of ['SendInput', 'CloseStdin', 'Update']) {
    expect(await unaryError(agent, `process.Process/${method}`, { ...nobody, input: { stdin: 'eA==' } })).toBe(
      '404 not_found',
    );
  }
  expect(await unaryError(agent, 'process.Process/SendSignal', { ...nobody, signal: 'SIGNAL_SIGKILL' })).toBe(
    '404 not_found',
  );
  expect(await unaryError(agent, 'process.Process/SendSignal', { signal: 'SIGNAL_SIGKILL' })).toBe(
    '400 invalid_argument',
  );
});

test('signals reach the process, by name and by number, and no others do', async () => {
  for (const [signal, status] of [
    ['SIGNAL_SIGTERM', 'signal: terminated'],
    ['SIGNAL_SIGKILL', 'signal: killed'],
    [15, 'signal: terminated'],
  ] as const) {
    const { events, pid } = await startWaiting('true');
    expect((await unary(agent, 'process.Process/SendSignal', { process: { pid }, signal })).status).toBe(200);
    expect((await finish(events)).end).toEqual({ exitCode: -1, status, error: status });
  }
  const { events, pid } = await startWaiting('true');
  expect(
    await unaryError(agent, 'process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_UNSPECIFIED' }),
  ).toBe('501 unimplemented');
  expect(await unaryError(agent, 'process.Process/SendSignal', { process: { pid }, signal: 2 })).toBe(
    '501 unimplemented',
  );
  await kill(pid);
  await finish(events);
});

test('an ended process takes neither signals nor input', async () => {
  const { pid } = await shell(agent, 'true');
  expect(await unaryError(agent, 'process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' })).toBe(
    '404 not_found',
  );
  expect(await unaryError(agent, 'process.Process/SendInput', { process: { pid }, input: { stdin: 'eA==' } })).toBe(
    '404 not_found',
  );
});

test('the end waits for the output of children that have the pipe', async () => {
  const { stdout, end } = await shell(agent, '(sleep 0.3; echo from the child) & exit 6');
  expect({ stdout, end }).toMatchObject({ stdout: 'from the child\n', end: { exitCode: 6 } });
});

test('after a signal it waits no more for such children, but what was written before is there', async () => {
  const { events, pid, go } = await startWaiting("trap 'echo trapped; exit 7' TERM; sleep 1000 & echo ready; wait");
  await go();
  await outputUntil(events, 'ready\n');
  await kill(pid, 'SIGNAL_SIGTERM');
  expect(await finish(events)).toMatchObject({ stdout: 'trapped\n', end: { exitCode: 7 } });
  await shell(agent, 'pkill -f "sleep 1000"');
});

test('a process whose child keeps the pipe can be let go', async () => {
  const events = await start(agent, { process: { cmd: '/bin/sh', args: ['-c', 'sleep 1000 & exit 8'] } });
  const pid = await startedPid(events);
  await until(async () => !(await isListed(pid)));
  await kill(pid);
  expect((await finish(events)).end?.exitCode).toBe(8);
  await shell(agent, 'pkill -f "sleep 1000"');
});

test('the timeout of a start kills the process; the one of an attached client does not', async () => {
  const events = await start(
    agent,
    { process: { cmd: '/bin/sleep', args: ['1000'] } },
    { 'connect-timeout-ms': '300' },
  );
  const pid = await startedPid(events);
  const brief = await finish(await attach(agent, { pid }, { 'connect-timeout-ms': '50' }));
  expect(brief.error?.code).toBe('deadline_exceeded');
  expect(await isListed(pid)).toBe(true);
  const other = await attach(agent, { pid });
  expect((await finish(events)).error?.code).toBe('deadline_exceeded');
  expect((await finish(other)).end?.status).toBe('signal: killed');
  expect(await isListed(pid)).toBe(false);
});

test('the timeout holds when its client is long gone', async () => {
  const events = await start(
    agent,
    { process: { cmd: '/bin/sleep', args: ['1000'] } },
    { 'connect-timeout-ms': '200' },
  );
  const pid = await startedPid(events);
  await events[Symbol.asyncDispose]();
  await until(async () => !(await isListed(pid)));
});

test('a timeout that is no number is refused, zero is none', async () => {
  expect((await run(agent, 'true', [], { headers: { 'connect-timeout-ms': 'soon' } })).error?.code).toBe(
    'invalid_argument',
  );
  expect((await run(agent, 'true', [], { headers: { 'connect-timeout-ms': '0' } })).end?.status).toBe('exit status 0');
});

test('silent streams are kept alive at the interval that is asked for', async () => {
  const events = await start(
    agent,
    { process: { cmd: '/bin/sleep', args: ['1000'] } },
    { 'keepalive-ping-interval': '1' },
  );
  const pid = await startedPid(events);
  expect((await events.next())?.event).toEqual({ keepalive: {} });
  expect((await events.next())?.event).toEqual({ keepalive: {} });
  await kill(pid);
  await finish(events);
});

/** A client that attaches and then never reads: the data sent to it fills its socket and stays there. */
async function attachAndStall(pid: number): Promise<{ close(): void; resume(): Promise<string> }> {
  const body = envelope({ process: { pid } });
  const socket = connect(agent.port, '127.0.0.1');
  socket.write(
    `POST /process.Process/Connect HTTP/1.1\r\nHost: a\r\nContent-Type: application/connect+json\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  socket.write(body);
  const started = Promise.withResolvers<void>();
  socket.once('data', bytes => {
    socket.pause();
    if (bytes.includes('start')) started.resolve();
  });
  await started.promise;
  return {
    close: () => socket.destroy(),
    async resume() {
      let tail = '';
      const ended = Promise.withResolvers<void>();
      socket.on('data', bytes => {
        tail = (tail + bytes.toString('latin1')).slice(-2000);
        if (tail.endsWith('0\r\n\r\n')) ended.resolve();
      });
      socket.resume();
      await ended.promise;
      socket.destroy();
      return tail;
    },
  };
}

test('a client that stops reading does not stop another, and is told that it lost its place', async () => {
  const bytes = 100_000_000;
  const { events, pid, go } = await startWaiting(`head -c ${bytes} /dev/zero`);
  const stalled = await attachAndStall(pid);
  await go();
  const { stdout, end } = await finish(events);
  expect(stdout.length).toBe(bytes);
  expect(end?.status).toBe('exit status 0');
  expect(await stalled.resume()).toContain('resource_exhausted');
});

test('a process waits for its only client, and the agent does not grow', async () => {
  const residentKiB = async () =>
    Number(/^VmRSS:\s+(\d+)/m.exec(await Bun.file(`/proc/${agent.agentPid()}/status`).text())?.[1]);
  const { events, pid, go } = await startWaiting('head -c 300000000 /dev/zero; echo done > /tmp/stalled-done');
  const stalled = await attachAndStall(pid);
  await events[Symbol.asyncDispose]();
  const before = await residentKiB();
  await go();
  // Its output has stopped: the pipe is full, and so is everything behind it.
  let seen = 0;
  for (let before = -1; seen === 0 || seen !== before;) {
    await Bun.sleep(100);
    before = seen;
    const status = await shell(agent, `cat /proc/$(pgrep -P ${pid} head)/io 2>/dev/null | grep ^wchar`);
    seen = Number(status.stdout.split(' ')[1] ?? 0);
  }
  expect(seen).toBeLessThan(50_000_000);
  expect(await Bun.file(agent.path('/tmp/stalled-done')).exists()).toBe(false);
  expect((await residentKiB()) - before).toBeLessThan(40 << 10);
  stalled.close();
  // Without a client it runs to its end.
  await until(() => Bun.file(agent.path('/tmp/stalled-done')).exists());
});

test('killing the agent cuts streams instead of ending them', async () => {
  const events = await start(agent, { process: { cmd: '/bin/sleep', args: ['1000'] } });
  await startedPid(events);
  process.kill(agent.agentPid(), 'SIGKILL');
  await expect(finish(events)).rejects.toThrow();
  await agent.healthy();
});
