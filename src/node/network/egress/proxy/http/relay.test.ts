import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import type { Channel, ChannelUser } from '../channel.ts';
import { Relay } from './relay.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A connection whose other end is the test. */
class FakeChannel implements Channel {
  user: ChannelUser | undefined;
  written = '';
  isFull = false;
  isPaused = false;
  isEnded = false;
  isClosed = false;

  use(user: ChannelUser): void {
    this.user = user;
  }
  write(bytes: Uint8Array): boolean {
    this.written += Buffer.from(bytes).toString('latin1');
    return bytes.length === 0 || !this.isFull;
  }
  end(): void {
    this.isEnded = true;
  }
  abort(): void {
    this.isClosed = true;
  }
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
  sends(text: string): void {
    this.user?.data(Buffer.from(text, 'latin1'));
  }
  /** The bytes written since the last call. */
  took(): string {
    const { written } = this;
    this.written = '';
    return written;
  }
}

/** A relay between a client and a server of a.test, port 80. */
function relay({ connect }: { connect?: (server: FakeChannel) => Promise<Channel> } = {}) {
  const [client, server] = [new FakeChannel(), new FakeChannel()];
  const refused: string[] = [];
  const rule: Record<string, string> = {};
  let connects = 0;
  new Relay({
    ...{ host: 'a.test', port: 80, defaultPort: 80, client, toPlatform: false },
    connect: async () => (connects++, connect ? connect(server) : server),
    headers: () => ({ ...rule }),
    onRefused: reason => void refused.push(reason),
  }).start();
  return { client, server, refused, rule, connects: () => connects };
}

/** Lets code that waits for the connection run on. */
const connected = async () => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
};
const get = (path: string, ...lines: string[]) =>
  ['GET', ...lines].join('\r\n').replace('GET', `GET ${path} HTTP/1.1\r\nHost: a.test`) + '\r\n\r\n';
const post = (...lines: string[]) => get('/', ...lines).replace('GET', 'POST');
const ok = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const upgrade = get('/', 'Connection: upgrade', 'Upgrade: websocket');
const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n';

test('requests are passed on one after the other, by one connection, each with the headers of its moment', async () => {
  const { client, server, rule, connects } = relay();
  client.sends(get('/1') + get('/2') + get('/3').slice(0, 9));
  await connected();
  expect(server.took()).toBe(get('/1'));
  server.sends(ok('one'));
  expect(client.took()).toBe(ok('one'));
  await connected();
  expect(server.took()).toBe(get('/2'));
  rule['X-Key'] = 'k';
  server.sends(ok('t').slice(0, 20));
  server.sends(ok('t').slice(20));
  client.sends(get('/3').slice(9));
  await connected();
  expect(client.took()).toBe(ok('t'));
  expect(server.took()).toBe(get('/3', 'X-Key: k'));
  expect([connects(), client.isPaused, client.isClosed, server.isPaused]).toEqual([1, false, false, false]);
});

test.each([
  ['another host', get('/').replace('a.test', 'b.test'), 'another host, b.test'],
  ['no host', 'GET / HTTP/1.0\r\n\r\n', 'another host, or none'],
  ['another port', get('/').replace('a.test', 'a.test:81'), 'another port'],
  ['no request', 'nonsense\r\n\r\n', 'no valid HTTP/1 request'],
])('a request of %s is not passed on, behind another one either', async (_, text, reason) => {
  for (const before of ['', get('/')]) {
    const { client, server, refused } = relay();
    client.sends(before + text);
    await connected();
    expect(server.took()).toBe(before);
    if (before) server.sends(ok(''));
    await connected();
    expect(refused).toEqual([expect.stringContaining(reason)]);
    expect([server.took(), client.isClosed, server.isClosed]).toEqual(['', true, before !== '']);
  }
});

test('a TRACE, whose answer is the request as it came, is passed on only where no rule sets headers', async () => {
  const trace = get('/').replace('GET', 'TRACE');
  const { client, server, refused, rule } = relay();
  client.sends(trace);
  await connected();
  expect(server.took()).toBe(trace);
  server.sends(ok(''));
  rule['Authorization'] = 'secret';
  client.sends(trace);
  await connected();
  expect(refused).toEqual(['a TRACE, which would tell what the rule sets']);
  expect([server.took(), client.isClosed, server.isClosed]).toEqual(['', true, true]);
});

test('a body is passed on as it comes, no faster than the server takes it, and ends where it says', async () => {
  const { client, server, refused } = relay();
  client.sends(`${post('Transfer-Encoding: chunked')}3\r\nabc`);
  expect(client.isPaused).toBeTrue();
  await connected();
  expect(server.took()).toBe(`${post('Transfer-Encoding: chunked')}3\r\nabc`);
  expect(client.isPaused).toBeFalse();
  server.isFull = true;
  client.sends('\r\n2\r\nde');
  expect([server.took(), client.isPaused]).toEqual(['\r\n2\r\nde', true]);
  server.isFull = false;
  server.user?.drained();
  expect(client.isPaused).toBeFalse();
  client.sends(`\r\n0\r\n\r\n${get('/next')}`);
  expect(server.took()).toBe('\r\n0\r\n\r\n');
  server.sends(ok(''));
  await connected();
  expect(server.took()).toBe(get('/next'));
  server.sends(ok(''));
  client.sends(`${post('Transfer-Encoding: chunked')}x\r\n`);
  await connected();
  expect(refused).toEqual(['a malformed body']);
  expect([client.isClosed, server.isClosed]).toEqual([true, true]);
});

test('a response is passed on no faster than the client takes it', async () => {
  const { client, server } = relay();
  client.sends(get('/'));
  await connected();
  client.isFull = true;
  server.sends(ok('four').slice(0, -2));
  expect(server.isPaused).toBeTrue();
  client.isFull = false;
  client.user?.drained();
  expect(server.isPaused).toBeFalse();
  server.sends('ur');
  expect(client.took()).toBe(ok('four'));
});

test('the bytes that a client may send ahead are limited', async () => {
  const { client, server } = relay();
  client.sends(get('/'));
  await connected();
  client.sends('x'.repeat(64 << 10));
  expect(client.isPaused).toBeFalse();
  client.sends('x');
  expect(client.isPaused).toBeTrue();
  expect(server.took()).toBe(get('/'));
});

test('interim responses come before the one, and not without end', async () => {
  const early = 'HTTP/1.1 103 Early Hints\r\n\r\n';
  for (const count of [16, 17]) {
    const { client, server } = relay();
    client.sends(get('/'));
    await connected();
    server.sends(early.repeat(count) + ok('x'));
    expect(client.took()).toBe(early.repeat(16) + (count === 16 ? ok('x') : ''));
    expect(client.isClosed).toBe(count > 16);
  }
});

test.each([
  ['an answer to nothing', ok(''), ok('')],
  ['no HTTP', '', 'nonsense\r\n\r\n'],
  ['a protocol that nobody asked for', '', switching],
  ['a body that is none', '', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n'],
])('%s breaks both connections off', async (_, before, text) => {
  const { client, server } = relay();
  client.sends(get('/'));
  await connected();
  server.sends(before);
  expect(client.isClosed).toBeFalse();
  server.sends(text);
  expect([client.isClosed, server.isClosed]).toEqual([true, true]);
  const { written } = client;
  server.sends(ok('late'));
  expect(client.written).toBe(written);
});

test('after an answer to half a request, or more than an answer, the client gets it and no other', async () => {
  for (const [request, answer] of [
    [post('Content-Length: 5'), ok('no')],
    [get('/'), `${ok('no')}HTTP/1.1 200 OK\r\n`],
  ] as const) {
    const { client, server } = relay();
    client.sends(request);
    await connected();
    server.sends(answer);
    expect([client.took(), client.isEnded, client.isClosed, server.isClosed]).toEqual([ok('no'), true, false, true]);
    client.sends(get('/'));
    await connected();
    expect(server.took()).toBe(request);
    // A client that does not close its half is cut off.
    jest.advanceTimersByTime(4_999);
    expect(client.isClosed).toBeFalse();
    jest.advanceTimersByTime(1);
    expect(client.isClosed).toBeTrue();
  }
});

test('a client that has sent its requests and ends its half gets its answer', async () => {
  const { client, server } = relay();
  client.sends(get('/'));
  client.user?.ended();
  await connected();
  expect(client.isEnded).toBeFalse();
  server.sends(ok('x'));
  expect([client.took(), client.isEnded, server.isClosed]).toEqual([ok('x'), true, true]);
  // A connection that ends in the middle of a body, or between two requests, waits for no client.
  const broken = relay();
  broken.client.sends(post('Content-Length: 5'));
  await connected();
  broken.client.user?.ended();
  expect([broken.client.isClosed, broken.server.isClosed]).toEqual([true, true]);
  const idle = relay();
  idle.client.user?.ended();
  expect([idle.client.isEnded, idle.client.isClosed, idle.connects()]).toEqual([true, false, 0]);
});

test('the end of the server ends a body that ends with it, and breaks any other off', async () => {
  for (const [head, isWhole] of [
    ['HTTP/1.1 200 OK\r\n\r\n', true],
    ['HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n', false],
    ['HTTP/1.1 200', false],
  ] as const) {
    const { client, server } = relay();
    client.sends(get('/'));
    await connected();
    server.sends(`${head}some`);
    server.user?.ended();
    expect([client.isEnded, client.isClosed, server.isClosed]).toEqual([isWhole, !isWhole, true]);
  }
  const [idle, reset] = [relay(), relay()];
  for (const { client } of [idle, reset]) client.sends(get('/'));
  await connected();
  idle.server.sends(ok(''));
  idle.server.user?.ended();
  expect([idle.client.isEnded, idle.client.isClosed]).toEqual([true, false]);
  reset.server.user?.closed();
  expect([reset.client.isEnded, reset.client.isClosed]).toEqual([false, true]);
});

test('heads come in parts, and short ones behind long ones', async () => {
  const { client, server } = relay();
  const halves = (text: string) => [text.slice(0, -1), text.slice(-1)];
  for (const [path, parts] of [
    [`/${'x'.repeat(9000)}`, halves],
    ['/', (text: string) => [text]],
  ] as const) {
    for (const part of parts(get(path))) client.sends(part);
    await connected();
    expect(server.took()).toBe(get(path));
    const answer = `HTTP/1.1 200 OK\r\nX: ${path}\r\nContent-Length: 0\r\n\r\n`;
    for (const part of parts(answer)) server.sends(part);
    expect(client.took()).toBe(answer);
  }
});

test('a request to which a rule adds an invalid header is not passed on', async () => {
  const { client, server, rule, refused } = relay();
  rule['X-Key'] = 'a\nb';
  client.sends(get('/'));
  await connected();
  expect([server.took(), client.isClosed]).toEqual(['', true]);
  expect(refused).toEqual(['a request that can’t be written']);
});

test('a WebSocket continues raw once the server agrees, with the bytes that both sides sent ahead', async () => {
  const { client, server, refused } = relay();
  client.sends(`${upgrade}from the client`);
  await connected();
  expect(server.took()).toStartWith('GET / HTTP/1.1\r\nHost: a.test\r\n');
  server.sends(`HTTP/1.1 103 Early Hints\r\n\r\n${switching}from the server`);
  expect(client.took()).toEndWith(`${switching}from the server`);
  expect(server.took()).toBe('from the client');
  client.sends('nonsense\r\n\r\n');
  server.sends('and back');
  expect([server.took(), client.took(), refused]).toEqual(['nonsense\r\n\r\n', 'and back', []]);
  // However long nobody sends anything.
  jest.advanceTimersByTime(3_600_000);
  expect([client.isClosed, server.isClosed]).toEqual([false, false]);
  client.user?.ended();
  expect([server.isEnded, client.isEnded]).toEqual([true, false]);
  server.user?.closed();
  expect(client.isClosed).toBeTrue();
});

test('neither side of a WebSocket waits for ever, nor is read faster than the other takes it', async () => {
  const { client, server } = relay();
  client.sends(upgrade);
  await connected();
  // The client has sent as much ahead as is accepted, and takes nothing.
  client.sends('x'.repeat((64 << 10) + 1));
  client.isFull = true;
  server.sends(switching);
  expect([client.isPaused, server.isPaused]).toEqual([false, true]);
  client.isFull = false;
  client.user?.drained();
  expect(server.isPaused).toBeFalse();
});

test('a WebSocket begins behind its request', async () => {
  const { client, server } = relay();
  client.sends(upgrade.replace('\r\n\r\n', '\r\nContent-Length: 5\r\n\r\nfour'));
  await connected();
  server.sends(switching);
  expect([client.isClosed, server.isClosed]).toEqual([true, true]);
});

test('a WebSocket that the server refuses is a request like any other', async () => {
  const { client, server } = relay();
  client.sends(upgrade + get('/next'));
  await connected();
  server.took();
  server.sends(ok('no'));
  await connected();
  expect([client.took(), server.took()]).toEqual([ok('no'), get('/next')]);
});

test('without a connection to the server the client has none either, and one that comes late is given up', async () => {
  const failed = relay({ connect: () => Promise.reject(new Error('refused')) });
  failed.client.sends(get('/'));
  await connected();
  expect([failed.client.isClosed, failed.refused]).toEqual([true, []]);
  const { promise, resolve } = Promise.withResolvers<Channel>();
  const late = relay({ connect: () => promise });
  late.client.sends(get('/'));
  late.client.user?.closed();
  resolve(late.server);
  await connected();
  expect([late.server.isClosed, late.server.written]).toEqual([true, '']);
});

test('a head may take so long, and a connection may be idle for so long', async () => {
  const silent = relay();
  jest.advanceTimersByTime(9_999);
  expect(silent.client.isClosed).toBeFalse();
  jest.advanceTimersByTime(1);
  expect(silent.client.isClosed).toBeTrue();
  const slow = relay();
  jest.advanceTimersByTime(9_999);
  slow.client.sends(get('/').slice(0, 5));
  jest.advanceTimersByTime(9_999);
  // The time counts from the head's first octet.
  slow.client.sends(get('/').slice(5, 9));
  expect(slow.client.isClosed).toBeFalse();
  jest.advanceTimersByTime(1);
  expect(slow.client.isClosed).toBeTrue();

  const { client, server } = relay();
  client.sends(get('/'));
  await connected();
  // An answer may take any time.
  jest.advanceTimersByTime(3_600_000);
  server.sends(ok(''));
  jest.advanceTimersByTime(299_999);
  expect(client.isClosed).toBeFalse();
  client.sends('G');
  jest.advanceTimersByTime(9_999);
  expect(client.isClosed).toBeFalse();
  jest.advanceTimersByTime(1);
  expect([client.isClosed, server.isClosed]).toEqual([true, true]);

  const ahead = relay();
  ahead.client.sends(`${get('/')}G`);
  await connected();
  ahead.server.sends(ok(''));
  jest.advanceTimersByTime(10_000);
  expect(ahead.client.isClosed).toBeTrue();
});
