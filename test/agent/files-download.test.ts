import { beforeAll, expect, test } from 'bun:test';
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { shell } from './support/process.ts';
import { sharedAgent } from './support/shared-agent.ts';
import { addUser } from './support/users.ts';

const agent = sharedAgent({ init: { defaultUser: 'someone' } });

const text = 'The quick brown fox jumps over the lazy dog.\n';
const largeBytes = 5 << 20;
const large = Buffer.alloc(
  largeBytes,
  Uint8Array.from({ length: 251 }, (_, index) => index),
);

beforeAll(async () => {
  addUser(agent, 'someone', 4321);
  writeFileSync(agent.path('/home/someone/fox.txt'), text);
  utimesSync(agent.path('/home/someone/fox.txt'), 1_700_000_000.5, 1_700_000_000.5);
  writeFileSync(agent.path('/home/someone/large.bin'), large);
  writeFileSync(agent.path('/home/someone/empty'), '');
});

/** Sends the headers unchanged: no encoding is requested unless a test does so. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return fetch(`${agent.url}/files?path=${encodeURIComponent(path)}`, {
    method,
    headers: { 'accept-encoding': '', ...headers },
    decompress: false,
  } as RequestInit);
}

async function raw(path: string, headers: Record<string, string> = {}): Promise<{ response: Response; bytes: Buffer }> {
  const response = await get(path, headers);
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
}

test('a file comes with its length, type, name and time', async () => {
  const { response, bytes } = await raw('fox.txt');
  expect(response.status).toBe(200);
  expect(bytes.toString()).toBe(text);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-length': String(text.length),
    'content-type': 'text/plain; charset=utf-8',
    'content-disposition': 'inline; filename=fox.txt',
    'last-modified': 'Tue, 14 Nov 2023 22:13:20 GMT',
    vary: 'Accept-Encoding',
  });
});

test('large files come whole in each coding', async () => {
  expect((await raw('large.bin')).bytes.equals(large)).toBe(true);
  const { response, bytes } = await raw('large.bin', { 'accept-encoding': 'gzip, deflate, br' });
  expect(response.headers.get('content-encoding')).toBe('gzip');
  expect(gunzipSync(bytes).equals(large)).toBe(true);
});

test('incompressible files are sent plain, unless the client accepts only compression', async () => {
  const random = crypto.getRandomValues(Buffer.alloc(64 << 10));
  const bytes = Buffer.concat(
    Array.from({ length: 48 }, (_, at) => Buffer.concat([random.subarray(at), random.subarray(0, at)])),
  );
  const incompressible = Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)));
  writeFileSync(agent.path('/home/someone/random.bin'), bytes);
  writeFileSync(agent.path('/home/someone/small-random.bin'), incompressible);
  const plain = await raw('random.bin', { 'accept-encoding': 'gzip, deflate, br' });
  expect(plain.response.headers.get('content-encoding')).toBeNull();
  expect(plain.bytes.equals(bytes)).toBe(true);
  for (const [path, content, coding] of [
    ['random.bin', bytes, 'gzip, identity;q=0'],
    ['small-random.bin', incompressible, 'gzip'],
  ] as const) {
    const packed = await raw(path, { 'accept-encoding': coding });
    expect(packed.response.headers.get('content-encoding')).toBe('gzip');
    expect(gunzipSync(packed.bytes).equals(content)).toBe(true);
  }
});

test('an empty file has the length 0 whatever coding is asked for', async () => {
  for (const coding of ['', 'gzip', 'gzip;q=1, identity;q=0']) {
    const { response, bytes } = await raw('empty', { 'accept-encoding': coding });
    expect({ status: response.status, length: response.headers.get('content-length'), bytes: bytes.length }).toEqual({
      status: 200,
      length: '0',
      bytes: 0,
    });
    expect(response.headers.get('content-encoding')).toBeNull();
  }
});

test.each([
  [undefined, 'identity'],
  ['', 'identity'],
  ['gzip, deflate, br', 'gzip'],
  ['deflate, br', 'identity'],
  ['identity, gzip', 'identity'],
  ['identity;q=0.5, gzip;q=0.8', 'gzip'],
  ['gzip;q=0', 'identity'],
  ['gzip;q=0, *', 'identity'],
  ['*', 'identity'],
  ['*, gzip', 'identity'],
  ['*, identity;q=0', 'gzip'],
  ['br, *;q=0.1', 'identity'],
  ['identity;q=0', 406],
  ['br, *;q=0', 406],
  ['*;q=0, gzip', 'gzip'],
  ['GZIP', 'gzip'],
])('Accept-Encoding %p gets %p', async (header, expected) => {
  const { response, bytes } = await raw('fox.txt', header === undefined ? {} : { 'accept-encoding': header });
  if (expected === 406) return expect(response.status).toBe(406);
  expect(response.headers.get('content-encoding') ?? 'identity').toBe(String(expected));
  expect((expected === 'gzip' ? gunzipSync(bytes) : bytes).toString()).toBe(text);
});

test.each([
  ['bytes=0-2', 'The', 'bytes 0-2/45'],
  ['bytes=4-', text.slice(4), 'bytes 4-44/45'],
  ['bytes=-5', text.slice(-5), 'bytes 40-44/45'],
  ['bytes=40-9999', text.slice(40), 'bytes 40-44/45'],
  ['bytes=-9999', text, 'bytes 0-44/45'],
])('the range %s is served in part', async (range, body, contentRange) => {
  const { response, bytes } = await raw('fox.txt', { range, 'accept-encoding': 'gzip' });
  expect(response.status).toBe(206);
  expect(bytes.toString()).toBe(body);
  expect(response.headers.get('content-range')).toBe(contentRange);
  expect(response.headers.get('content-length')).toBe(String(body.length));
  expect(response.headers.get('content-encoding')).toBeNull();
});

test('a range of a large file is exactly that', async () => {
  const { response, bytes } = await raw('large.bin', { range: 'bytes=1000001-4200000' });
  expect(response.status).toBe(206);
  expect(bytes.equals(large.subarray(1_000_001, 4_200_001))).toBe(true);
});

test.each([['bytes=45-'], ['bytes=-0'], ['bytes=1000-2000']])('the range %s is outside', async range => {
  const response = await get('fox.txt', { range });
  expect(response.status).toBe(416);
  expect(response.headers.get('content-range')).toBe('bytes */45');
});

test.each([['bytes=5-2'], ['lines=0-1'], ['bytes=0-1,4-5'], ['bytes=x-y']])('the range %s is ignored', async range => {
  const { response, bytes } = await raw('fox.txt', { range });
  expect({ status: response.status, length: bytes.length }).toEqual({ status: 200, length: text.length });
});

test('conditions on the time of the file are kept', async () => {
  const modified = 'Tue, 14 Nov 2023 22:13:20 GMT';
  const earlier = 'Tue, 14 Nov 2023 22:13:19 GMT';
  const status = async (headers: Record<string, string>) => (await get('fox.txt', headers)).status;
  expect(await status({ 'if-modified-since': modified })).toBe(304);
  expect(await status({ 'if-modified-since': earlier })).toBe(200);
  expect(await status({ 'if-unmodified-since': modified })).toBe(200);
  expect(await status({ 'if-unmodified-since': earlier })).toBe(412);
  expect(await status({ 'if-range': modified, range: 'bytes=0-1' })).toBe(206);
  expect(await status({ 'if-range': earlier, range: 'bytes=0-1' })).toBe(200);
});

test.each([undefined, 'gzip, deflate, br'])('HEAD tells the size without the bytes (%s)', async coding => {
  const response = await get('fox.txt', coding === undefined ? {} : { 'accept-encoding': coding }, 'HEAD');
  expect({
    status: response.status,
    length: response.headers.get('content-length'),
    body: await response.text(),
  }).toEqual({ status: 200, length: '45', body: '' });
});

test.each([
  ['picture.png', 'x', 'image/png'],
  ['page.html', 'x', 'text/html; charset=utf-8'],
  ['data.json', 'x', 'application/json; charset=utf-8'],
  ['no-ending', 'plain text', 'text/plain; charset=utf-8'],
  ['no-ending-binary', '\x00\x01\x02', 'application/octet-stream'],
  ['no-ending-pdf', '%PDF-1.7', 'application/pdf'],
  ['.hidden', 'plain text', 'text/plain; charset=utf-8'],
])('the type of %s is told', async (name, content, type) => {
  writeFileSync(agent.path(`/home/someone/${name}`), content);
  expect((await get(name)).headers.get('content-type')?.replace(/;(?! )/, '; ')).toBe(type);
});

test('names that need quoting are quoted', async () => {
  for (const [name, expected] of [
    ['a b.txt', 'inline; filename="a b.txt"'],
    ['ü.txt', 'inline; filename="_.txt"; filename*=UTF-8\'\'%C3%BC.txt'],
    ['q".txt', 'inline; filename="q\\".txt"'],
  ] as const) {
    writeFileSync(agent.path(`/home/someone/${name}`), 'x');
    expect((await get(name)).headers.get('content-disposition')).toBe(expected);
  }
});

test('files of proc, which say that they are empty, come with their content in each coding', async () => {
  const plain = await raw('/proc/version');
  expect(plain.bytes.toString()).toStartWith('Linux version');
  const packed = await raw('/proc/version', { 'accept-encoding': 'gzip' });
  expect(gunzipSync(packed.bytes).toString()).toBe(plain.bytes.toString());
  expect((await raw('/proc/sys/kernel/random/boot_id')).bytes.toString()).toMatch(/^[0-9a-f-]{36}\n$/);
  const symbols = await raw('/proc/kallsyms');
  expect(symbols.bytes.length).toBeGreaterThan(1 << 20);
});

test('files of the agent and its threads are refused', async () => {
  const ids = readdirSync(`/proc/${agent.agentPid()}/task`).map(thread => {
    const status = readFileSync(`/proc/${agent.agentPid()}/task/${thread}/status`, 'utf8');
    return /^NSpid:.*\t(\d+)$/m.exec(status)?.[1];
  });
  expect(ids.length).toBeGreaterThan(1);
  for (const id of ['self', '1', ...ids])
    for (const name of ['maps', 'environ']) expect((await get(`/proc/${id}/${name}`)).status).toBe(400);
  expect((await get('/proc/net/dev')).status).toBe(200);
});

test('links are followed', async () => {
  symlinkSync('fox.txt', agent.path('/home/someone/link'));
  expect((await raw('link')).bytes.toString()).toBe(text);
});

test.each([
  ['/home/someone', 400],
  ['', 400],
  ['~else/x', 400],
  ['loop', 400],
  ['no/such/file', 404],
  ['fox.txt/below', 404],
  ['/dev/zero', 400],
  ['pipe', 400],
  ['socket', 400],
])('%p answers %d', async (path, status) => {
  await shell(
    agent,
    'cd ~; [ -p pipe ] || { mkfifo pipe; ln -s loop loop; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'socket\')"; }',
  );
  const response = await get(path);
  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject({ code: status });
});

test('an unknown user is refused, and a named one has another home', async () => {
  expect((await fetch(`${agent.url}/files?path=x&username=stranger`)).status).toBe(401);
  mkdirSync(agent.path('/root'), { recursive: true });
  writeFileSync(agent.path('/root/only-root'), 'of root');
  expect(await (await fetch(`${agent.url}/files?path=only-root&username=root`)).text()).toBe('of root');
});

test('a file that becomes shorter while it is read breaks the connection', async () => {
  const path = agent.path('/home/someone/shrinking');
  writeFileSync(path, '');
  truncateSync(path, 200 << 20);
  const socket = connect(agent.port, '127.0.0.1');
  socket.write('GET /files?path=shrinking HTTP/1.1\r\nHost: a\r\n\r\n');
  await new Promise(resolve => socket.once('readable', resolve));
  truncateSync(path, 1000);
  let tail = '';
  const closed = new Promise<void>(resolve => socket.once('close', () => resolve()));
  socket.on('error', () => {});
  socket.on('data', bytes => (tail = (tail + bytes.toString('latin1')).slice(-100)));
  await closed;
  expect(tail).not.toEndWith('0\r\n\r\n');
});

test('a file that grows while it is read is served as long as it was', async () => {
  const path = agent.path('/home/someone/growing');
  writeFileSync(path, Buffer.alloc(60 << 20, 'a'));
  const response = await get('growing', { range: 'bytes=0-' });
  const fd = openSync(path, 'a');
  writeSync(fd, Buffer.alloc(1 << 20, 'b'));
  closeSync(fd);
  expect((await response.arrayBuffer()).byteLength).toBe(60 << 20);
});

/** Open files of that name in the agent. */
function openOf(name: string): number {
  const folder = `/proc/${agent.agentPid()}/fd`;
  return readdirSync(folder).filter(fd => tryReadlink(join(folder, fd)).endsWith(`/${name}`)).length;
}

function tryReadlink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // closed meanwhile
  }
}

test('a client that stops reading costs no memory, and one that goes leaves no open file', async () => {
  const path = agent.path('/home/someone/endless');
  writeFileSync(path, '');
  truncateSync(path, 10 * 2 ** 30);
  const resident = async () =>
    Number(/^VmRSS:\s+(\d+)/m.exec(await Bun.file(`/proc/${agent.agentPid()}/status`).text())?.[1]) / 1024;
  const before = await resident();
  const sockets = Array.from({ length: 10 }, () => connect(agent.port, '127.0.0.1'));
  for (const socket of sockets) {
    socket.write('GET /files?path=endless HTTP/1.1\r\nHost: a\r\n\r\n');
    await new Promise(resolve => socket.once('readable', resolve));
    socket.read(10);
  }
  // A window: an agent that read on for clients that take nothing would grow in it.
  await Bun.sleep(200);
  expect((await resident()) - before).toBeLessThan(64);
  for (const socket of sockets) socket.destroy();
  while (openOf('endless') > 0) await Bun.sleep(20);
  expect(statSync(path).size).toBe(10 * 2 ** 30);
});
