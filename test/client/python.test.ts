import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';
import { testUnless } from '../support/skip.ts';

// The Python client against a server that gives prescribed answers and records its requests.

const python = Bun.which('python3');
const testWithPython = testUnless(python === null ? 'python3 is not installed' : undefined);

type Asked = { line: string; headers: Record<string, string>; body: string };
const asked: Asked[] = [];
let answers: (() => Response)[] = [];
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname, search } = new URL(request.url);
    asked.push({
      line: `${request.method} ${pathname}${search}`,
      headers: Object.fromEntries(request.headers),
      body: await request.text(),
    });
    return answers.shift()?.() ?? Response.json({ message: 'nothing more was to be asked' }, { status: 418 });
  },
});
const folder = mkdtempSync(join(tmpdir(), 'atoll-python-'));
afterAll(async () => {
  await server.stop(true);
  rmSync(folder, { recursive: true });
});

/** The output of a program that has a client called `platform`. */
async function runs(program: string, next: (() => Response)[]): Promise<string> {
  asked.length = 0;
  answers = next;
  const path = join(folder, 'program.py');
  await Bun.write(path, `from atoll_client import Atoll, AtollFailure\nplatform = Atoll()\n${program}`);
  const { exitCode, stdout, stderr } = await runToEnd([python ?? 'python3', path], {
    env: {
      ...process.env,
      PYTHONPATH: join(repository, 'clients/python'),
      PYTHONDONTWRITEBYTECODE: '1',
      ATOLL_URL: `http://127.0.0.1:${server.port}/`,
      ATOLL_API_KEY: 'e2b_key',
      no_proxy: '127.0.0.1',
    },
  });
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return stdout;
}
const empty = () => new Response(null, { status: 204 });
const failing =
  (status: number, code = 'busy') =>
  () =>
    Response.json({ code: status, message: 'not now', error_code: code }, { status, headers: { 'Retry-After': '0' } });

testWithPython('members go where the operation has them: path, query, header, body', async () => {
  const program = `
print(platform.list_sandboxes_v2(state=['running', 'paused'], metadata='a=b&c=d', limit=3))
platform.create_sandbox_v2(body={'templateID': 'base'}, idempotency_key='mine')
platform.pause_sandbox('../admin/teams?x#y')
platform.put_volume_file('v', body=b'\\x00bytes', path='/a', force=True, token='of the volume')
for name in ('', '.', '..'):
    try: platform.delete_sandbox(name)
    except ValueError: print('refused')`;
  const created = () => Response.json({ sandboxID: 'x' }, { status: 201 });
  const printed = await runs(program, [() => Response.json([]), created, empty, created]);
  expect(printed).toBe('[]\nrefused\nrefused\nrefused\n');
  expect(asked.map(({ line, body }) => [line, body])).toEqual([
    ['GET /v2/sandboxes?metadata=a%3Db%26c%3Dd&state=running%2Cpaused&limit=3', ''],
    ['POST /v2/sandboxes', '{"templateID": "base"}'],
    ['POST /sandboxes/..%2Fadmin%2Fteams%3Fx%23y/pause', ''],
    ['PUT /volumecontent/v/file?path=%2Fa&force=true', '\0bytes'],
  ]);
  expect(asked[1]?.headers).toMatchObject({ 'idempotency-key': 'mine', 'x-api-key': 'e2b_key' });
  expect(asked[3]?.headers['authorization']).toBe('Bearer of the volume');
  expect(asked[3]?.headers['x-api-key']).toBeUndefined();
});

testWithPython('a failure says why, and what changed nothing is asked again', async () => {
  const program = `
platform.pause_sandbox('x')
platform.create_sandbox_v2(body={'templateID': 'base'})
try: platform.fork_sandbox('x', body={})
except AtollFailure as failure: print(failure, failure.status, failure.code, failure.retry_after)
try: Atoll('http://127.0.0.1:9', retries=0).get_health()
except AtollFailure as failure: print(failure.operation, failure.status)`;
  const created = () => Response.json({}, { status: 201 });
  const next = [failing(503), failing(429), empty, failing(503), created, failing(500)];
  expect(await runs(program, next)).toBe('forkSandbox: not now 500 busy 0.0\ngetHealth 0\n');
  expect(asked).toHaveLength(6);
  const [first, second] = asked.slice(3, 5).map(({ headers }) => headers['idempotency-key']);
  expect(first).toMatch(/^[0-9a-f-]{36}$/);
  expect(second).toBe(first!);
});

testWithPython('what may have been done is asked again where that does the same once', async () => {
  const program = `
platform.delete_sandbox('x')
try: platform.pause_sandbox('x')
except AtollFailure as failure: print(failure.status, failure.code)`;
  const lost = failing(500, 'api_connection_lost');
  expect(await runs(program, [lost, empty, lost])).toBe('500 api_connection_lost\n');
  expect(asked).toHaveLength(3);
});

testWithPython('a stream of events goes on behind the last one over new connections', async () => {
  const stream = (text: string) => () => new Response(text, { headers: { 'Content-Type': 'text/event-stream' } });
  const program = `
for event in platform.stream_events():
    print(event['id'])
    if event['id'] == 'c': break`;
  const printed = await runs(program, [
    stream('event: ready\nid: 4\ndata: {"after":4}\n\nid: 5\ndata: {"id":"a"}\n\n:\n\nid: 6\ndata: {"id":'),
    failing(503),
    stream('event: ready\nid: 5\ndata: {}\n\nid: 6\r\ndata: {"id":\r\ndata: "b"}\r\n\r\n'),
    stream('id: 7\ndata: {"id":"c"}\n\n'),
  ]);
  expect(printed).toBe('a\nb\nc\n');
  expect(asked.map(({ line }) => line)).toEqual([
    'GET /events/stream',
    'GET /events/stream?after=5',
    'GET /events/stream?after=5',
    'GET /events/stream?after=6',
  ]);
  const followed = await runs(`for entry in platform.stream_sandbox_logs('x', tail=5): print(entry['message'])`, [
    stream('event: ready\nid: 0\ndata: {}\n\nid: 1\ndata: {"message":"a"}\n\n'),
    stream('id: 2\ndata: {"message":"b"}\n\nevent: end\ndata: {}\n\n'),
  ]);
  expect(followed).toBe('a\nb\n');
  expect(asked.map(({ line }) => line)).toEqual([
    'GET /sandboxes/x/logs/stream?tail=5',
    'GET /sandboxes/x/logs/stream?after=1&tail=5',
  ]);
});

test('every operation has a method in Python’s own spelling', async () => {
  const text = await Bun.file(join(repository, 'clients/python/atoll_client/operations.py')).text();
  const document = (await Bun.file(join(repository, 'docs/openapi.json')).json()) as {
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  const ids = Object.values(document.paths).flatMap(methods => Object.values(methods).map(it => it.operationId));
  const methods = [...text.matchAll(/^ {4}def (\w+)\(/gm)].map(([, name]) => name);
  expect(methods).toHaveLength(ids.length);
  expect(new Set(methods).size).toBe(ids.length);
});
