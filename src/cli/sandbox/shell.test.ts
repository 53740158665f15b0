import { expect, test } from 'bun:test';
import type { Input } from '../terminal/command.ts';
import { shellCommand } from './shell.ts';

/** A message of a stream of the Connect protocol; 2 marks the last one. */
function envelope(message: unknown, flags = 0): Uint8Array {
  const text = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5, flags);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, text]);
}

type Call = { path: string; headers: Headers; body: Record<string, unknown> };
const bodyOf = (bytes: Buffer) => JSON.parse(bytes.toString().slice(bytes[0] === 0x7b ? 0 : 5)) as Call['body'];

/** A platform with one sandbox, whose terminal shows `shown` and ends with `end` once it got a key and another size. */
function platform({ end, shown = '' }: { end: object | undefined; shown?: string }) {
  const calls: Call[] = [];
  const done = { SendInput: Promise.withResolvers<void>(), Update: Promise.withResolvers<void>() };
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const path = new URL(request.url).pathname;
      const body = Buffer.from(await request.arrayBuffer());
      calls.push({ path, headers: request.headers, body: bodyOf(body) });
      if (path.endsWith('/connect')) return Response.json({ sandboxID: 'i1', envdVersion: '0.4.0', templateID: 't' });
      for (const [method, { resolve }] of Object.entries(done)) if (path.endsWith(`/${method}`)) resolve();
      if (!path.endsWith('/Start')) return Response.json({});
      const events = async function* () {
        yield envelope({ event: { start: { pid: 7 } } });
        yield envelope({ event: { data: { pty: Buffer.from(shown).toString('base64') } } });
        await Promise.all([done.SendInput.promise, done.Update.promise]);
        if (end) yield envelope({ event: { end } });
        yield envelope(end ? {} : { error: { code: 'unavailable', message: 'gone' } }, 2);
      };
      return new Response(events(), { headers: { 'content-type': 'application/connect+json' } });
    },
  });
  const connection = { url: `http://127.0.0.1:${server.port}`, apiKey: `e2b_${'0'.repeat(40)}`, domain: 'localhost' };
  const called = (method: string) => calls.filter(({ path }) => path.endsWith(`/${method}`));
  return { connect: () => connection, called, [Symbol.asyncDispose]: () => server.stop(true) };
}

/** A terminal that changes its size and in which `x` is typed, and what happened to it. */
function keyboard() {
  const raw: boolean[] = [];
  const size = { columns: 132, rows: 50 };
  const listeners = new Set<() => void>();
  const input: Input = {
    isTerminal: true,
    async *chunks() {
      size.columns = 100;
      for (const listener of listeners) listener();
      yield Buffer.from('x');
    },
    setRaw: isRaw => void raw.push(isRaw),
    size: () => ({ ...size }),
    onResize(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return { input, raw, listeners };
}

async function run(of: Parameters<typeof platform>[0], ...args: string[]) {
  await using there = platform(of);
  const keys = keyboard();
  const out: string[] = [];
  const terminal = {
    out: (bytes: string | Uint8Array) => void out.push(Buffer.from(bytes).toString()),
    err: () => {},
    isInteractive: true,
    input: keys.input,
  };
  const result = await shellCommand(there.connect)
    .run([...args, 'i1'], terminal)
    .catch((error: unknown) => error);
  return { result, out: out.join(''), ...keys, called: there.called };
}

test('a terminal is as large as the one that it is shown in, and ends with the exit code of its shell', async () => {
  const end = { exitCode: 3, exited: true, status: 'exit status 3', error: 'exit status 3' };
  const { result, out, raw, listeners, called } = await run({ end, shown: '$ ' });
  expect([result, out]).toEqual([3, '$ ']);
  const [start] = called('Start');
  expect(start?.body).toMatchObject({ pty: { size: { cols: 132, rows: 50 } } });
  // However long somebody works in it.
  expect(start?.headers.get('connect-timeout-ms')).toBeNull();
  expect(called('SendInput')[0]?.body).toMatchObject({ process: { pid: 7 }, input: { pty: btoa('x') } });
  expect(called('Update')[0]?.body).toMatchObject({ process: { pid: 7 }, pty: { size: { cols: 100, rows: 50 } } });
  // The keyboard is as it was.
  expect(raw).toEqual([true, false]);
  expect(listeners.size).toBe(0);
});

test('the user and the folder are those that were named', async () => {
  const end = { exitCode: 0, exited: true, status: 'exit status 0' };
  const named = (await run({ end }, '--user', 'root', '-c', '/srv')).called('Start')[0];
  expect(named?.headers.get('authorization')).toBe(`Basic ${btoa('root:')}`);
  expect(named?.body).toMatchObject({ process: { cwd: '/srv' } });
  const plain = (await run({ end })).called('Start')[0];
  expect(plain?.headers.get('authorization')).toBeNull();
  expect(plain?.body).not.toMatchObject({ process: { cwd: expect.anything() } });
});

test('a connection that breaks off is no end of the shell, and the keyboard is as it was all the same', async () => {
  const { result, raw } = await run({ end: undefined });
  expect(result).toMatchObject({ code: 'unavailable', message: expect.stringContaining('broke off') });
  expect(raw).toEqual([true, false]);
});

test('without a terminal there is none inside either', async () => {
  const terminal = { out: () => {}, err: () => {}, isInteractive: false };
  await expect(shellCommand(() => ({ url: '', apiKey: '', domain: '' })).run(['i1'], terminal)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('atoll sandbox exec'),
  });
});
