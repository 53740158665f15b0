import { expect, test } from 'bun:test';
import { envelopeOf, endOfStream } from '../../base/envelopes.ts';
import type { Input } from '../terminal/command.ts';
import { execCommand, lineOf } from './exec.ts';

type Call = { path: string; headers: Headers; body: Record<string, unknown> };
type Message = { flags?: number; says: object };
const event = (says: object): Message => ({ says: { event: says } });
const last = (says: object = {}): Message => ({ flags: endOfStream, says });
const base64 = (bytes: string | Uint8Array) => Buffer.from(bytes).toString('base64');

function bytesOf({ flags = 0, says }: Message): Uint8Array {
  const envelope = envelopeOf(Buffer.from(JSON.stringify(says)));
  envelope[0] = flags;
  return envelope;
}

const refusal = { message: 'It is out of reach.' };

/**
 * A platform with one sandbox, in which a command says this once it got its input; with `status`, the command does not
 * begin.
 */
function platform(messages: Message[], status: number) {
  const calls: Call[] = [];
  const isClosed = Promise.withResolvers<void>();
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const path = new URL(request.url).pathname;
      const body = Buffer.from(await request.arrayBuffer()).toString();
      calls.push({ path, headers: request.headers, body: JSON.parse(body.slice(body.indexOf('{'))) as Call['body'] });
      if (path.endsWith('/connect'))
        return Response.json({ sandboxID: 'i1', envdVersion: '0.6.2', templateID: 't', envdAccessToken: 'token' });
      if (path.endsWith('/CloseStdin')) isClosed.resolve();
      if (!path.endsWith('/Start')) return Response.json({});
      const said = async function* () {
        yield bytesOf(event({ start: { pid: 7 } }));
        await isClosed.promise;
        for (const message of messages) yield bytesOf(message);
      };
      return new Response(status === 200 ? said() : JSON.stringify(status === 503 ? refusal : {}), { status });
    },
  });
  const connection = { url: `http://127.0.0.1:${server.port}`, apiKey: `e2b_${'0'.repeat(40)}`, domain: 'localhost' };
  const called = (method: string) => calls.filter(({ path }) => path.endsWith(`/${method}`));
  return { connect: () => connection, called, [Symbol.asyncDispose]: () => server.stop(true) };
}

const inputOf = (chunks: string[], isTerminal: boolean): Input => ({
  isTerminal,
  async *chunks() {
    for (const chunk of chunks) yield Buffer.from(chunk);
  },
  setRaw: () => {},
  size: () => ({ columns: 80, rows: 24 }),
  onResize: () => () => {},
});

type Scene = { messages?: Message[]; status?: number; input?: Input };
const ends = (exitCode: number) => [event({ end: { exitCode, status: `exit status ${exitCode}` } }), last()];

/** Runs a command in a sandbox; answers its exit code, or why it failed. */
async function run(args: string[], { messages = ends(0), status = 200, input }: Scene = {}) {
  await using there = platform(messages, status);
  const out: Uint8Array[] = [];
  let err = '';
  const terminal = {
    out: (bytes: string | Uint8Array) => void out.push(Buffer.from(bytes)),
    err: (text: string) => void (err += text),
    isInteractive: false,
    ...(input && { input }),
  };
  const result = await execCommand(there.connect)
    .run(args, terminal)
    .catch((error: unknown) => error);
  return { result, out: Buffer.concat(out), err, called: there.called };
}

test('a command ends with its exit code, and its output is byte for byte what it has written', async () => {
  const bytes = Uint8Array.of(0, 255, 195);
  const [head, tail] = [Buffer.from('ä').subarray(0, 1), Buffer.from('ä').subarray(1)];
  const { result, out, err } = await run(['i1', 'true'], {
    messages: [
      event({ data: { stdout: base64(bytes) } }),
      // A character that arrives in two pieces.
      ...[head, tail].map(half => event({ data: { stderr: base64(half) } })),
      ...ends(3),
    ],
  });
  expect([result, [...out], err]).toEqual([3, [...bytes], 'ä']);
});

test('a command gets its user, directory and environment, and those of the template where none is named', async () => {
  const named = await run(['-u', 'root', '-c', '/srv', '-e', 'A=b=c', '-e', 'D=', 'i1', '--', 'ls', '-l', 'a b']);
  const [start] = named.called('Start');
  expect(start?.body).toEqual({
    process: { cmd: '/bin/bash', args: ['-l', '-c', "ls -l 'a b'"], envs: { A: 'b=c', D: '' }, cwd: '/srv' },
    stdin: true,
  });
  expect(start?.headers.get('authorization')).toBe(`Basic ${base64('root:')}`);
  expect(start?.headers.get('x-access-token')).toBe('token');
  const [plain] = (await run(['i1', 'echo $HOME'])).called('Start');
  expect(plain?.body).toEqual({
    process: { cmd: '/bin/bash', args: ['-l', '-c', 'echo $HOME'], envs: {} },
    stdin: true,
  });
  expect(plain?.headers.get('authorization')).toBeNull();
});

test('piped input is the input of the command, which then ends', async () => {
  const { result, called } = await run(['i1', 'cat'], { input: inputOf(['a', 'b'], false) });
  expect(result).toBe(0);
  const sent = called('SendInput').map(({ body }) => body);
  expect(sent).toMatchObject(['a', 'b'].map(text => ({ process: { pid: 7 }, input: { stdin: base64(text) } })));
  expect(called('CloseStdin')[0]?.body).toMatchObject({ process: { pid: 7 } });
});

test('a person who types is not waited for: the input of the command is empty', async () => {
  const { result, called } = await run(['i1', 'cat'], { input: inputOf(['a'], true) });
  expect([result, called('SendInput'), called('CloseStdin').length]).toEqual([0, [], 1]);
});

test('what keeps a command from beginning or ending is no exit code', async () => {
  const refused = last({ error: { code: 'not_found', message: 'no user nobody' } });
  expect((await run(['i1', 'true'], { messages: [refused] })).result).toMatchObject({
    code: 'not_found',
    message: 'no user nobody',
  });
  for (const messages of [[], [last()], [event({ data: { stdout: base64('x') } })]])
    expect((await run(['i1', 'true'], { messages })).result).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('broke off'),
    });
  expect((await run(['i1', 'true'], { status: 502 })).result).toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('502'),
  });
});

test('an error behind the end of a command does not change how it ended', async () => {
  const [end] = ends(4) as [Message];
  const late = last({ error: { code: 'internal', message: 'late' } });
  expect((await run(['i1', 'true'], { messages: [end, late] })).result).toBe(4);
  // Only the last message of a stream may say why it failed.
  const early = { says: { error: { code: 'internal', message: 'early' } } };
  expect((await run(['i1', 'true'], { messages: [early, last()] })).result).toMatchObject({ code: 'unavailable' });
});

test('one word is a line for the shell, and of more each stands for itself', () => {
  expect(lineOf(['echo $HOME | wc'])).toBe('echo $HOME | wc');
  expect(lineOf(['echo', '$HOME', "it's", '', 'a=b', '/x-y_z.w'])).toBe(`echo '$HOME' 'it'\\''s' '' a=b /x-y_z.w`);
});

test('a command that a signal has ended has the exit code of shells; a refusal says why', async () => {
  const killed = { end: { exitCode: -1, status: 'signal: killed', error: 'signal: killed' } };
  expect((await run(['i1', 'x'], { messages: [event(killed), last()] })).result).toBe(137);
  const { result } = await run(['i1', 'x'], { status: 503 });
  expect(result).toMatchObject({ code: 'unavailable', message: 'It is out of reach.' });
});
