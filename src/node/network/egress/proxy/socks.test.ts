import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import type { EgressProxy } from '../../../../protocol/network/network.ts';
import { readBytes } from './bytes.ts';
import { SocketChannel } from './channel.ts';
import { askSocks } from './socks.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A channel whose other end is the test. */
function opened() {
  const socket = {
    sent: '',
    broken: 0,
    write: (bytes: Uint8Array) => {
      socket.sent += Buffer.from(bytes).toString('hex');
      return bytes.length;
    },
    terminate: () => void socket.broken++,
  };
  const channel = new SocketChannel(socket as unknown as Bun.Socket<SocketChannel>);
  const says = (hex: string) => channel.onData(Buffer.from(hex, 'hex'));
  /** The bytes sent since the last call. */
  const took = () => {
    const { sent } = socket;
    socket.sent = '';
    return sent;
  };
  /** The bytes that the next user of the channel finds in it. */
  const left = () => {
    let text = '';
    channel.use({ data: bytes => void (text += bytes.toString('hex')), drained() {}, ended() {}, closed() {} });
    return text;
  };
  return { socket, channel, says, took, left };
}
const turn = async () => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};
const hex = (text: string) => Buffer.from(text).toString('hex');
const proxy = (more: Partial<EgressProxy> = {}): EgressProxy => ({ address: 'proxy.test:1080', ...more });

function asked(host: string, port: number, more: Partial<EgressProxy> = {}) {
  const at = opened();
  const result = askSocks(at.channel, { host, port }, proxy(more)).then(
    () => 'done',
    (error: Error) => error.message,
  );
  return { ...at, result };
}

test.each([
  ['a.test', `03${'06'}${hex('a.test')}`],
  ['192.0.2.1', '01c0000201'],
  ['2001:db8::1', '0420010db8000000000000000000000001'],
])('a server is asked for %s as it is, and what it sends behind its reply stays', async (host, address) => {
  for (const reply of ['01c00002010050', `03${'03'}${hex('abc')}0050`, `04${'00'.repeat(16)}0050`]) {
    const at = asked(host, 0x1f90);
    expect(at.took()).toBe('050100');
    at.says('0500');
    await turn();
    expect(at.took()).toBe(`050100${address}1f90`);
    for (const byte of `050000${reply}`.match(/../g) ?? []) {
      at.says(byte);
      await turn();
    }
    at.says('aabb');
    expect([await at.result, at.left(), at.socket.broken]).toEqual(['done', 'aabb', 0]);
  }
});

test('a password is given to a server that takes it', async () => {
  const at = asked('192.0.2.1', 80, { username: 'me', password: 'pässe' });
  expect(at.took()).toBe('050102');
  at.says('0502');
  await turn();
  expect(at.took()).toBe(`0102${hex('me')}06${hex('pässe')}`);
  at.says('0100');
  await turn();
  expect(at.took()).toBe('05010001c00002010050');
});

test('a user without a password has an empty one', async () => {
  const at = asked('192.0.2.1', 80, { username: 'me' });
  at.says('0502');
  await turn();
  expect(at.took()).toBe(`0501020102${hex('me')}00`);
});

test.each([
  ['does not take this kind of login', {}, '05ff'],
  ['this is no SOCKS5 server', {}, '0400'],
  ['this is no SOCKS5 server', {}, '0502'],
  ['this is no SOCKS5 server', { username: 'me', password: 'x' }, '0500'],
  ['refused the credentials', { username: 'me', password: 'x' }, '05020101'],
  ['its rules forbid it', {}, '050005020001'],
  ['the connection was refused', {}, '050005050001'],
  ['says: reply 99', {}, '050005630001'],
])('%s: says so and asks for nothing more (%j, %s)', async (message, more, answer) => {
  const at = asked('192.0.2.1', 80, more);
  at.says(answer);
  expect(await at.result).toContain(message);
});

test('a server that says nothing is left, and its connection broken off', async () => {
  const at = asked('192.0.2.1', 80);
  jest.advanceTimersByTime(14_999);
  expect(at.socket.broken).toBe(0);
  jest.advanceTimersByTime(1);
  expect([await at.result, at.socket.broken]).toEqual(['no answer in time', 1]);
});

test('what a server had said before it closed is still read', async () => {
  for (const close of ['onEnd', 'onClose'] as const) {
    const at = asked('192.0.2.1', 80);
    at.says('05ff');
    at.channel[close]();
    expect(await at.result).toContain('does not take this kind of login');
    const early = asked('192.0.2.1', 80);
    early.says('05');
    early.channel[close]();
    expect(await early.result).toBe('the connection was closed');
  }
});

test('bytes are read as they are asked for, and the time ends with the reading', async () => {
  const at = opened();
  const reader = readBytes(at.channel, 1000);
  at.says('0102030405');
  expect((await reader.read(2)).toString('hex')).toBe('0102');
  const rest = reader.read(4);
  at.says('0607');
  expect((await rest).toString('hex')).toBe('03040506');
  reader.release();
  jest.advanceTimersByTime(1000);
  expect([at.socket.broken, at.left()]).toEqual([0, '07']);
});

test('nothing is waited for from a connection that is closed', async () => {
  const at = opened();
  const reader = readBytes(at.channel, 1000);
  at.says('01');
  at.channel.onEnd();
  expect((await reader.read(1)).toString('hex')).toBe('01');
  await expect(reader.read(1)).rejects.toThrow('the connection was closed');
  expect(at.socket.broken).toBe(1);
  const gone = opened();
  gone.channel.onClose();
  await expect(readBytes(gone.channel, 1000).read(1)).rejects.toThrow('the connection was closed');
});
