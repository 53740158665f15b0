import { beforeAll, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { shell } from './support/process.ts';
import { unary } from './support/rpc.ts';
import { sharedAgent } from './support/shared-agent.ts';
import { addUser } from './support/users.ts';

const agent = sharedAgent({ init: { defaultUser: 'someone' } });
beforeAll(() => addUser(agent, 'someone', 4321));

type Written = { path: string; name: string; type: string; metadata?: Record<string, string> };
const octets = 'application/octet-stream';

async function post(
  query: string,
  body: Bun.BodyInit,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Written[] & { code?: number; message?: string } }> {
  const response = await fetch(`${agent.url}/files${query}`, { method: 'POST', body, headers });
  return { status: response.status, body: (await response.json()) as Written[] & { code?: number; message?: string } };
}

const put = (path: string, body: Bun.BodyInit, headers: Record<string, string> = {}) =>
  post(`?path=${encodeURIComponent(path)}`, body, { 'content-type': octets, ...headers });
const read = (path: string) => readFileSync(agent.path(path), 'utf8');

const boundary = 'the-boundary';
const form = { 'content-type': `multipart/form-data; boundary=${boundary}` };
/** A form as bytes, so that a part's head can be anything. */
const parts = (...items: { head: string; body: string }[]) =>
  `${items.map(({ head, body }) => `--${boundary}\r\n${head}\r\n\r\n${body}\r\n`).join('')}--${boundary}--\r\n`;
const file = (filename: string, body: string) => ({
  head: `Content-Disposition: form-data; name="file"; filename="${filename}"`,
  body,
});

test('what can not be written is the caller’s error, and says what is there', async () => {
  for (const [path, status, message] of [
    ['/tmp', 400, "path '/tmp' is a directory"],
    ['/proc/version', 403, "path '/proc/version' can't be written or read"],
    ['/etc/passwd/below', 400, "path '/etc/passwd/below' goes through something that is not a directory"],
  ] as const) {
    const answer = await put(path, 'x');
    expect({ path, status: answer.status, message: answer.body.message }).toEqual({ path, status, message });
  }
});

test('bytes are written as the user’s file, and answered as written', async () => {
  expect(await put('up/one.txt', 'content')).toEqual({
    status: 200,
    body: [{ path: '/home/someone/up/one.txt', name: 'one.txt', type: 'file' }] as Written[],
  });
  const facts = statSync(agent.path('/home/someone/up/one.txt'));
  expect({ text: read('/home/someone/up/one.txt'), uid: facts.uid, gid: facts.gid, mode: facts.mode & 0o7777 }).toEqual(
    { text: 'content', uid: 4321, gid: 4321, mode: 0o644 },
  );
  const above = statSync(agent.path('/home/someone/up'));
  expect({ uid: above.uid, mode: above.mode & 0o7777 }).toEqual({ uid: 4321, mode: 0o755 });
});

test('a file that is there is written anew in place, and becomes the user’s', async () => {
  writeFileSync(agent.path('/tmp/there'), 'long former content', { mode: 0o600 });
  const before = statSync(agent.path('/tmp/there'));
  await put('/tmp/there', 'new');
  const after = statSync(agent.path('/tmp/there'));
  expect({ text: read('/tmp/there'), inode: after.ino, mode: after.mode & 0o777, uid: after.uid }).toEqual({
    text: 'new',
    inode: before.ino,
    mode: 0o600,
    uid: 4321,
  });
});

test('a link is followed', async () => {
  writeFileSync(agent.path('/tmp/behind'), 'old');
  symlinkSync('/tmp/behind', agent.path('/tmp/before'));
  await put('/tmp/before', 'through');
  expect(read('/tmp/behind')).toBe('through');
});

test('an empty body is an empty file', async () => {
  expect((await put('/tmp/nothing', '')).status).toBe(200);
  expect(read('/tmp/nothing')).toBe('');
});

test('a body of unknown length, in many pieces, arrives whole', async () => {
  const piece = 'abcdefghij'.repeat(1000);
  const body = new ReadableStream({
    async start(controller) {
      for (let index = 0; index < 300; index++) {
        controller.enqueue(new TextEncoder().encode(piece));
        if (index % 50 === 0) await Bun.sleep(1);
      }
      controller.close();
    },
  });
  await put('/tmp/pieces', body);
  expect(read('/tmp/pieces')).toBe(piece.repeat(300));
});

test('gzip is unpacked on the way; what is broken or unknown is refused', async () => {
  const content = 'packed '.repeat(100_000);
  expect((await put('/tmp/packed', gzipSync(content), { 'content-encoding': 'gzip' })).status).toBe(200);
  expect(read('/tmp/packed')).toBe(content);
  expect((await put('/tmp/broken', 'no gzip at all', { 'content-encoding': 'gzip' })).status).toBe(400);
  expect((await put('/tmp/broken', gzipSync(content).subarray(0, 300), { 'content-encoding': 'gzip' })).status).toBe(
    400,
  );
  expect((await put('/tmp/other', 'x', { 'content-encoding': 'br' })).status).toBe(400);
  const packedForm = gzipSync(parts(file('/tmp/packed-form', 'in a form')));
  expect((await post('', packedForm, { ...form, 'content-encoding': 'gzip' })).status).toBe(200);
  expect(read('/tmp/packed-form')).toBe('in a form');
});

test('each part called file is a file, with the directories of its name', async () => {
  const { status, body } = await post(
    '',
    parts(
      file('form/a.txt', 'first'),
      { head: 'Content-Disposition: form-data; name="note"', body: 'ignored' },
      file('/tmp/form/b', ''),
    ),
    form,
  );
  expect(status).toBe(200);
  expect(body.map(({ path }) => path)).toEqual(['/home/someone/form/a.txt', '/tmp/form/b']);
  expect([read('/home/someone/form/a.txt'), read('/tmp/form/b')]).toEqual(['first', '']);
});

test('the path of the query wins over the name of the part', async () => {
  expect((await post('?path=/tmp/from-query', parts(file('from-part', 'x')), form)).body[0]?.path).toBe(
    '/tmp/from-query',
  );
});

test('text that only resembles a boundary is content', async () => {
  const tricky = `\r\n--${boundary.slice(0, -1)}\r\n--\r\n-${boundary}\r\n\r\n--`;
  await post('', parts(file('/tmp/tricky', tricky)), form);
  expect(read('/tmp/tricky')).toBe(tricky);
});

test('a form that arrives byte by byte is the same form', async () => {
  const bytes = Buffer.from(parts(file('/tmp/slow-a', 'one\r\n-'), file('/tmp/slow-b', 'two')));
  const socket = connect(agent.port, '127.0.0.1');
  socket.setNoDelay();
  const answer = new Promise<string>(resolve => socket.once('data', data => resolve(data.toString())));
  socket.write(
    `POST /files HTTP/1.1\r\nHost: a\r\nContent-Type: ${form['content-type']}\r\nContent-Length: ${bytes.length}\r\n\r\n`,
  );
  for (const byte of bytes) {
    socket.write(Buffer.from([byte]));
    await new Promise(resolve => setImmediate(resolve));
  }
  expect(await answer).toStartWith('HTTP/1.1 200');
  socket.destroy();
  expect([read('/tmp/slow-a'), read('/tmp/slow-b')]).toEqual(['one\r\n-', 'two']);
});

test('names in every notation are understood', async () => {
  const heads = [
    ['Content-Disposition: form-data; name="file"; filename="/tmp/quoted \\"name\\""', '/tmp/quoted "name"'],
    ['Content-Disposition: form-data; name=file; filename=/tmp/token', '/tmp/token'],
    ['content-disposition: form-data; name="file"; filename="x"; filename*=UTF-8\'\'%2Ftmp%2F%C3%BC', '/tmp/ü'],
    ['Content-Disposition: form-data; name="file"; filename="/tmp/漢字"', '/tmp/漢字'],
    ['Content-Type: text/plain\r\nContent-Disposition: form-data; filename="/tmp/order"; name="file"', '/tmp/order'],
  ] as const;
  for (const [head, path] of heads) {
    const { status, body } = await post('', parts({ head, body: path }), form);
    expect({ status, path: body[0]?.path }).toEqual({ status: 200, path });
    expect(read(path)).toBe(path);
  }
});

test('two parts of one path: the first stays, the request fails', async () => {
  const { status } = await post('', parts(file('/tmp/twice', 'first'), file('/tmp/twice', 'second')), form);
  expect({ status, text: read('/tmp/twice') }).toEqual({ status: 400, text: 'first' });
});

test.each([
  ['no boundary', 'multipart/form-data', parts(file('/tmp/x1', 'x'))],
  ['another boundary', 'multipart/form-data; boundary=other', parts(file('/tmp/x2', 'x'))],
  ['an end in the middle of a part', form['content-type'], parts(file('/tmp/x3', 'x')).slice(0, -10)],
  [
    'a head without an end',
    form['content-type'],
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="/tmp/x4"\r\nX: ${'y'.repeat(100_000)}`,
  ],
  ['no name', form['content-type'], parts({ head: 'Content-Disposition: form-data; name="file"', body: 'x' })],
  ['another content type', 'text/plain', 'x'],
  ['no content type', '', 'x'],
])('%s is refused', async (_, contentType, body) => {
  expect(await post('', Buffer.from(body), contentType === '' ? {} : { 'content-type': contentType })).toMatchObject({
    status: 400,
    body: { code: 400 },
  });
});

test('a path is needed, and must not be a directory or lead through a file', async () => {
  mkdirSync(agent.path('/tmp/directory'), { recursive: true });
  writeFileSync(agent.path('/tmp/plain'), 'x');
  for (const path of ['', '/tmp/directory', '/tmp/plain/below', '/dev/null', '~other/x'])
    expect((await put(path, 'x')).status).toBe(400);
  await shell(agent, 'mkfifo /tmp/fifo');
  expect((await put('/tmp/fifo', 'x')).status).toBe(400);
  expect(
    (
      await fetch(`${agent.url}/files?path=x&username=stranger`, {
        method: 'POST',
        body: 'x',
        headers: { 'content-type': octets },
      })
    ).status,
  ).toBe(401);
});

test('a full file system is told as such', async () => {
  const { stdout } = await shell(agent, 'df --output=avail -k /dev/shm | tail -1');
  const more = Number(stdout.trim()) + 1024;
  const full = await shell(
    agent,
    `head -c ${more}K /dev/zero > /dev/shm/filler; df --output=avail -k /dev/shm | tail -1`,
  );
  expect(full.stdout.trim()).toBe('0');
  expect((await put('/dev/shm/no-room', new Uint8Array(1 << 20))).status).toBe(507);
  await shell(agent, 'rm /dev/shm/*');
});

test('an upload that breaks off leaves no open file', async () => {
  const socket = connect(agent.port, '127.0.0.1');
  socket.write(
    `POST /files?path=/tmp/broken-off HTTP/1.1\r\nHost: a\r\nContent-Type: ${octets}\r\nContent-Length: 1000000\r\n\r\nstart`,
  );
  while (!existsSync(agent.path('/tmp/broken-off'))) await Bun.sleep(5);
  socket.destroy();
  const open = async () =>
    (
      await shell(agent, 'ls -l /proc/$(pgrep -of "agent[/]agent")/fd | grep -c broken-off', {
        headers: { authorization: `Basic ${btoa('root:')}` },
      })
    ).stdout.trim();
  while ((await open()) !== '0') await Bun.sleep(20);
});

test('2 GiB go up and down in constant memory', async () => {
  const peak = async () =>
    Number(/^VmHWM:\s+(\d+)/m.exec(await Bun.file(`/proc/${agent.agentPid()}/status`).text())?.[1]) / 1024;
  const before = await peak();
  const piece = new Uint8Array(4 << 20).fill(7);
  let left = 512;
  const body = new ReadableStream({
    pull: controller => (left-- > 0 ? controller.enqueue(piece) : controller.close()),
  });
  expect((await put('/tmp/huge', body)).status).toBe(200);
  expect(statSync(agent.path('/tmp/huge')).size).toBe(2 * 2 ** 30);
  const response = await fetch(`${agent.url}/files?path=/tmp/huge`, { headers: { 'accept-encoding': '' } });
  let got = 0;
  for await (const chunk of response.body ?? []) got += chunk.length;
  expect(got).toBe(2 * 2 ** 30);
  await unary(agent, 'filesystem.Filesystem/Remove', { path: '/tmp/huge' });
  expect((await peak()) - before).toBeLessThan(64);
}, 120_000);
