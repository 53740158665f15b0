import { afterEach, expect, test } from 'bun:test';
import type { Socket } from 'bun';
import { endOfStream, envelopeOf } from '../../base/envelopes.ts';
import { agentPort } from '../../protocol/agent.ts';
import { openNetworkNamespace } from '../native/netns.ts';
import { createPace } from './pace.ts';
import { runInSandbox, type AgentProcess } from './process.ts';

const cleanUps: (() => void)[] = [];
afterEach(() => cleanUps.splice(0).forEach(cleanUp => cleanUp()));

const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
const chunk = (bytes: Uint8Array) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
const message = (value: unknown, flags = 0) => {
  const envelope = envelopeOf(Buffer.from(JSON.stringify(value)));
  envelope[0] = flags;
  return chunk(envelope);
};
const started = message({ event: { start: { pid: 7 } } });
const said = (stream: 'stdout' | 'stderr', text: string) =>
  message({ event: { data: { [stream]: Buffer.from(text).toString('base64') } } });
const end = (exitCode: number, status: string) => message({ event: { end: { exitCode, status } } });
const over = (error?: object) => message(error ? { error } : {}, endOfStream);

/** What connections have left to send. */
const unsentOf = new WeakMap<Socket, Buffer>();

function drain(socket: Socket): void {
  const unsent = unsentOf.get(socket);
  if (unsent) unsentOf.set(socket, unsent.subarray(Math.max(socket.write(unsent), 0)));
}

/** Runs a program by a server that stands in for an agent: `answer` gets the connection once the request is there. */
function run(answer: (socket: Socket) => void, options: Partial<AgentProcess> = {}) {
  const output: string[] = [];
  const asked: { request: string; port: number } = { request: '', port: 0 };
  const closed = Promise.withResolvers<void>();
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, bytes) {
        asked.request += bytes.toString('latin1');
        answer(socket);
      },
      drain,
      close: () => closed.resolve(),
    },
  });
  const own = openNetworkNamespace(process.pid);
  const namespace = {
    ...own,
    connect(family: 'ipv4' | 'ipv6', port: number) {
      asked.port = port;
      return own.connect(family, server.port);
    },
  } as typeof own;
  cleanUps.push(
    () => server.stop(true),
    () => own.close(),
  );
  const program: AgentProcess = { argv: ['echo', 'a', 'b'], env: { NAME: 'value' }, cwd: '', timeoutMs: 0, ...options };
  const ended = runInSandbox(namespace, program, (stream, bytes) => output.push(`${stream} ${Buffer.from(bytes)}`));
  ended.catch(() => {});
  return { ended, output, asked, closed: closed.promise };
}

test('a program whose agent says much in small pieces is read more slowly, and to its end', async () => {
  const pieces = 20_000;
  const answer = (socket: Socket) => {
    const unsent = Buffer.concat([Buffer.from(head), ...Array(pieces).fill(said('stdout', 'a')), end(3, ''), over()]);
    unsentOf.set(socket, unsent);
    drain(socket);
  };
  const program = run(answer);
  const beganMs = performance.now();
  expect(await program.ended).toMatchObject({ exitCode: 3 });
  expect(program.output).toHaveLength(pieces);
  // In a second the reader takes some eight thousand messages.
  expect(performance.now() - beganMs).toBeGreaterThanOrEqual(900);
});

test('the request for a program says what was asked for, and nothing else', async () => {
  const answer = (socket: Socket) => socket.write(Buffer.concat([Buffer.from(head), end(0, 'exit status 0'), over()]));
  const plain = run(answer);
  expect(await plain.ended).toEqual({ exitCode: 0, status: 'exit status 0' });
  expect(plain.asked.port).toBe(agentPort);
  const [fields = '', body = ''] = plain.asked.request.split('\r\n\r\n');
  expect(fields).toStartWith('POST /process.Process/Start HTTP/1.1\r\n');
  expect(fields).toContain('Content-Type: application/connect+json');
  expect(fields).toContain('Connect-Protocol-Version: 1');
  expect(fields).toContain('Connection: close');
  for (const name of ['Timeout', 'Token', 'Authorization']) expect(fields).not.toContain(name);
  expect(JSON.parse(body.slice(5))).toEqual({
    process: { cmd: 'echo', args: ['a', 'b'], envs: { NAME: 'value' } },
    stdin: false,
  });
  const all = run(answer, { user: 'somebody', cwd: '/work', timeoutMs: 1500.2, accessToken: 'secret' });
  await all.ended;
  expect(all.asked.request).toContain('Connect-Timeout-Ms: 1501\r\n');
  expect(all.asked.request).toContain('X-Access-Token: secret\r\n');
  expect(all.asked.request).toContain(`Authorization: Basic ${btoa('somebody:')}`);
  expect(all.asked.request).toContain('"cwd":"/work"');
});

test('its output comes as it is written, and how it ended comes last', async () => {
  const { promise: running, resolve } = Promise.withResolvers<Socket>();
  let starts = 0;
  const it = run(resolve, { onStart: () => starts++ });
  const socket = await running;
  socket.write(Buffer.concat([Buffer.from(head), started, said('stdout', 'out')]));
  while (it.output.length < 1) await Bun.sleep(1);
  expect(starts).toBe(1);
  socket.write(Buffer.concat([said('stderr', 'err'), end(3, 'exit status 3')]));
  while (it.output.length < 2) await Bun.sleep(1);
  expect(Bun.peek.status(it.ended)).toBe('pending');
  socket.write(over());
  expect(await it.ended).toEqual({ exitCode: 3, status: 'exit status 3' });
  expect(it.output).toEqual(['stdout out', 'stderr err']);
  expect(starts).toBe(1);
  await it.closed;
});

test('what the agent refuses, leaves open or breaks off is reported', async () => {
  const failing = async (...parts: (string | Uint8Array)[]) => {
    const it = run(socket => {
      socket.end(Buffer.concat(parts.map(part => Buffer.from(part))));
    });
    return it.ended.catch((error: unknown) => error);
  };
  const refused = over({ code: 'invalid_argument', message: 'no such user' });
  expect(await failing(head, refused)).toMatchObject({ code: 'invalid', message: 'no such user' });
  // The agent's refusal counts, whatever came before it.
  expect(await failing(head, end(0, 'exit status 0'), refused)).toMatchObject({ code: 'invalid' });
  expect(await failing(head, started, over())).toMatchObject({ code: 'internal' });
  expect(await failing(head, started, end(0, 'exit status 0'))).toMatchObject({
    code: 'unavailable',
    message: 'the sandbox ended while the command ran',
  });
  const text = 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\nlost';
  expect(await failing(text)).toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('lost') as string,
  });
});

test('a program whose caller has gone is not asked for, and one that runs is left', async () => {
  const gone = run(() => {}, { signal: AbortSignal.abort(new Error('gone')) });
  await expect(gone.ended).rejects.toThrow('gone');
  expect(gone.asked).toEqual({ request: '', port: 0 });
  const leaving = new AbortController();
  const running = run(() => leaving.abort(new Error('later')), { signal: leaving.signal });
  await expect(running.ended).rejects.toThrow('later');
  await running.closed;
});

test('what is read in a second has a bound, and small messages, pieces and time count as bytes', () => {
  const now = { ms: 5_000 };
  const pace = createPace(() => now.ms);
  expect(pace(16 << 20, 0, 0, 0)).toBe(0);
  now.ms += 300;
  expect(pace(1, 0, 0, 0)).toBe(700);
  now.ms += 700;
  expect(pace(8_000 * 10, 8_000, 0, 0)).toBe(0);
  now.ms += 999;
  expect(pace(2_000, 200, 0, 0)).toBe(1);
  now.ms += 1;
  expect(pace(1, 1, 0, 0)).toBe(0);
  now.ms += 1_000;
  expect(pace(60_000, 0, 60_000, 0)).toBe(0);
  expect(pace(6_000, 0, 6_000, 0)).toBe(1_000);
  now.ms += 1_000;
  expect(pace(1, 0, 0, 100)).toBe(0);
  expect(pace(1, 0, 0, 0.5)).toBe(1_000);
  now.ms += 1_000;
  expect(pace(1, 0, 0, 99)).toBe(0);
});
