import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { finish, outputUntil, start, startedPid, type ProcessEvent } from './support/process.ts';
import { envelope, unary, unaryError, type RpcStream } from './support/rpc.ts';
import { sharedAgent } from './support/shared-agent.ts';

const agent = sharedAgent();

const base64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64');
const input = (pid: number, text: string | Uint8Array) => ({ process: { pid }, input: { stdin: base64(text) } });

async function startShell(line: string): Promise<{ events: RpcStream<ProcessEvent>; pid: number }> {
  const events = await start(agent, { process: { cmd: '/bin/sh', args: ['-c', line] }, stdin: true });
  return { events, pid: await startedPid(events) };
}

/** The status of a `SendInput` call of which only the beginning is sent. */
function rawStatus(header: string, body: string, signal?: AbortSignal): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const head = ['POST /process.Process/SendInput HTTP/1.1', 'Host: a', 'Content-Type: application/json', header];
  const socket = connect({ port: agent.port, host: '127.0.0.1', signal }, () =>
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`),
  );
  socket.once('data', data => {
    resolve(Number(data.toString('latin1').slice(9, 12)));
    socket.destroy();
  });
  socket.once('error', reject);
  return promise;
}

/** A client-streaming call: envelopes in, one message out. */
async function streamInput(messages: Uint8Array<ArrayBuffer>[]): Promise<{ status: number; text: string }> {
  const response = await fetch(`${agent.url}/process.Process/StreamInput`, {
    method: 'POST',
    headers: { 'content-type': 'application/connect+json' },
    body: Buffer.concat(messages),
  });
  return { status: response.status, text: await response.text() };
}

test('input arrives in order and ends when it is closed, twice too', async () => {
  // It must still exist when it is closed for the second time.
  const { events, pid } = await startShell('cat; echo ended; while [ ! -e /tmp/closed-twice ]; do sleep 0.01; done');
  for (const word of ['one ', 'two ', 'three\n'])
    expect((await unary(agent, 'process.Process/SendInput', input(pid, word))).body).toEqual({});
  for (let time = 0; time < 2; time++)
    expect(await unary(agent, 'process.Process/CloseStdin', { process: { pid } })).toEqual({ status: 200, body: {} });
  writeFileSync(agent.path('/tmp/closed-twice'), '');
  expect((await finish(events)).stdout).toBe('one two three\nended\n');
});

test('40 MB arrive in one message', async () => {
  const bytes = new Uint8Array(40_000_000).fill(0x61);
  const { events, pid } = await startShell('wc -c');
  expect((await unary(agent, 'process.Process/SendInput', input(pid, bytes))).status).toBe(200);
  await unary(agent, 'process.Process/CloseStdin', { process: { pid } });
  expect((await finish(events)).stdout.trim()).toBe('40000000');
});

test('input waits for a program that reads late', async () => {
  const { events, pid } = await startShell('sleep 0.5; wc -c');
  const sent = unary(agent, 'process.Process/SendInput', input(pid, new Uint8Array(1_000_000)));
  await sent;
  await unary(agent, 'process.Process/CloseStdin', { process: { pid } });
  expect((await finish(events)).stdout.trim()).toBe('1000000');
});

test('input that can not be taken is refused with a reason', async () => {
  const { events, pid } = await startShell('exec 0<&-; echo closed; exec sleep 1000');
  await outputUntil(events, 'closed');
  expect(await unaryError(agent, 'process.Process/SendInput', input(pid, 'x'))).toBe('500 internal');
  expect(await unaryError(agent, 'process.Process/SendInput', { process: { pid }, input: { pty: 'eA==' } })).toBe(
    '500 internal',
  );
  expect(await unaryError(agent, 'process.Process/SendInput', { process: { pid } })).toBe('501 unimplemented');
  expect(await unaryError(agent, 'process.Process/SendInput', { process: { pid }, input: {} })).toBe(
    '501 unimplemented',
  );
  await unary(agent, 'process.Process/CloseStdin', { process: { pid } });
  expect(await unaryError(agent, 'process.Process/SendInput', input(pid, 'x'))).toBe('500 internal');
  expect(
    await unaryError(agent, 'process.Process/Update', { process: { pid }, pty: { size: { cols: 1, rows: 1 } } }),
  ).toBe('500 internal');
  await unary(agent, 'process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' });
  await finish(events);

  const without = await start(agent, { process: { cmd: '/bin/sleep', args: ['1000'] }, stdin: false });
  const other = await startedPid(without);
  expect(await unaryError(agent, 'process.Process/SendInput', input(other, 'x'))).toBe('500 internal');
  expect((await unary(agent, 'process.Process/CloseStdin', { process: { pid: other } })).status).toBe(200);
  await unary(agent, 'process.Process/SendSignal', { process: { pid: other }, signal: 'SIGNAL_SIGKILL' });
  await finish(without);
});

test('a stream of input is taken message by message', async () => {
  const { events, pid } = await startShell('cat');
  const { status, text } = await streamInput([
    envelope({ start: { process: { pid } } }),
    envelope({ data: { input: { stdin: base64('a') } } }),
    envelope({ keepalive: {} }),
    envelope({ data: { input: { stdin: base64('b\n') } } }),
    envelope({}, 2),
  ]);
  expect(status).toBe(200);
  expect(text).toContain('{}');
  expect(text).not.toContain('error');
  await unary(agent, 'process.Process/CloseStdin', { process: { pid } });
  expect((await finish(events)).stdout).toBe('ab\n');
});

test('a message of input has a bound, and what is longer is not waited for', async () => {
  const longest = 128 << 20;
  const announced = (length: number) => {
    const head = Buffer.alloc(5);
    head.writeUInt32BE(length, 1);
    return head;
  };
  // Cut off: nobody refused it before.
  expect((await streamInput([announced(longest)])).text).toContain('invalid_argument');
  expect((await streamInput([announced(longest + 1)])).text).toContain('resource_exhausted');
  const statusAt = (length: number) => rawStatus(`Content-Length: ${length}`, '{"process":');
  expect(await statusAt(longest + 1)).toBe(429);
  const waiting = new AbortController();
  const answered = rawStatus(`Content-Length: ${longest}`, '{"process":', waiting.signal);
  expect(await Promise.race([answered, statusAt(longest + 1).then(() => 'still waits')])).toBe('still waits');
  waiting.abort();
  await answered.catch(() => {});
});

test('only what is a signal is sent as one', async () => {
  const { events, pid } = await startShell('read line; echo "$line"');
  for (const signal of ['SIGNAL_SIGHUP', 'SIGTERM', '1', 1, 0, '', 'constructor', '__proto__', 'toString'])
    expect(await unaryError(agent, 'process.Process/SendSignal', { process: { pid }, signal })).toBe(
      '501 unimplemented',
    );
  expect(await unaryError(agent, 'process.Process/SendSignal', { process: { pid } })).toBe('501 unimplemented');
  expect(await unaryError(agent, 'process.Process/SendSignal', { process: { pid }, signal: {} })).toBe(
    '400 invalid_argument',
  );
  await unary(agent, 'process.Process/SendInput', input(pid, 'unharmed\n'));
  expect((await finish(events)).stdout).toBe('unharmed\n');
  for (const [signal, status] of [
    ['SIGNAL_SIGTERM', 'signal: terminated'],
    ['SIGNAL_SIGKILL', 'signal: killed'],
    [15, 'signal: terminated'],
    [9, 'signal: killed'],
  ] as const) {
    const sleeping = await startShell('exec sleep 1000');
    await unary(agent, 'process.Process/SendSignal', { process: { pid: sleeping.pid }, signal });
    expect((await finish(sleeping.events)).end?.status).toBe(status);
  }
});

test('a stream of input must begin with its process, and may not break off in a message', async () => {
  expect((await streamInput([envelope({ data: { input: { stdin: base64('a') } } })])).text).toContain(
    'invalid_argument',
  );
  expect((await streamInput([envelope({ start: { process: { pid: 3_999_999 } } })])).text).toContain('not_found');
  expect(
    (await streamInput([envelope({ start: { process: { pid: 1 } } }).subarray(0, 9) as Uint8Array<ArrayBuffer>])).text,
  ).toContain('invalid_argument');
});
