import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { SocketChannel } from './channel.ts';
import type { Asked } from './decide.ts';
import { readOpening } from './opening.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A client that begins a connection, and what is found out about it. */
function opening(protocol: 'tls' | 'http' | 'unknown', patienceMs = 1000) {
  const socket = { paused: 0, pause: () => void socket.paused++ };
  const channel = new SocketChannel(socket as unknown as Bun.Socket<SocketChannel>);
  let asked: unknown = 'waits';
  const result = readOpening(channel, protocol, patienceMs).then(found => (asked = found));
  /** What is known once everything that can happen has happened. */
  const now = async () => {
    for (let i = 0; i < 5; i++) await Promise.resolve();
    return asked;
  };
  /** The bytes that the next reader finds in the channel. */
  const left = () => {
    let text = '';
    const data = (bytes: Buffer) => void (text += bytes.toString('latin1'));
    channel.use({ data, drained() {}, ended: () => void (text += '(ended)'), closed() {} });
    return text;
  };
  const says = (text: string) => channel.onData(Buffer.from(text, 'latin1'));
  return { socket, channel, result, now, left, says };
}
const nothing: Asked = { kind: 'other', name: undefined, encrypted: false };
const request = 'GET / HTTP/1.1\r\nHost: A.test\r\n\r\n';

/** A ClientHello for a.test. */
const hello = (() => {
  const name = '\0\0\0\x0b\0\x09\0\0\x06a.test';
  const body = `\x03\x03${'r'.repeat(32)}\0\0\x02\x13\x01\x01\0\0${String.fromCharCode(name.length)}${name}`;
  const message = `\x01\0\0${String.fromCharCode(body.length)}${body}`;
  return `\x16\x03\x01\0${String.fromCharCode(message.length)}${message}`;
})();

test.each([
  ['http', request, { kind: 'http', name: 'a.test', encrypted: false }],
  ['tls', hello, { kind: 'tls', name: 'a.test', encrypted: false }],
] as const)('the host that %s names is read, and what was read stays in the channel', async (protocol, text, asked) => {
  for (const pieceBytes of [1, 9, 1000]) {
    const at = opening(protocol);
    for (let from = 0; from < text.length; from += pieceBytes) {
      expect(await at.now()).toBe('waits');
      at.says(text.slice(from, from + pieceBytes));
    }
    expect([await at.now(), at.socket.paused, at.left()]).toEqual([asked, 1, text]);
    jest.advanceTimersByTime(1000);
    expect(at.socket.paused).toBe(1);
  }
});

test('a client whose protocol names no host is not waited for', async () => {
  const at = opening('unknown');
  expect([await at.result, at.socket.paused]).toEqual([nothing, 0]);
});

test('a client that says nothing in time, or not all, has named no host', async () => {
  for (const text of ['', request.slice(0, -1)]) {
    const at = opening('http', 500);
    at.says(text);
    jest.advanceTimersByTime(499);
    expect(await at.now()).toBe('waits');
    jest.advanceTimersByTime(1);
    expect([await at.now(), at.left()]).toEqual([nothing, text]);
  }
});

test('another protocol names no host, but may show which one was meant', async () => {
  const tls = opening('tls');
  tls.says(request);
  expect(await tls.now()).toEqual(nothing);
  const http = opening('http');
  http.says('nonsense\r\n\r\n');
  expect(await http.now()).toEqual({ ...nothing, meant: undefined });
  const connect = opening('http');
  connect.says('GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n');
  expect(await connect.now()).toMatchObject({ kind: 'other', name: undefined });
});

test('a client that ends has gone, unless it has said something', async () => {
  const silent = opening('http');
  silent.channel.onEnd();
  expect(await silent.now()).toBeUndefined();
  const cut = opening('http');
  cut.says('GET /');
  cut.channel.onEnd();
  expect([await cut.now(), cut.left()]).toEqual([nothing, 'GET /(ended)']);
  const gone = opening('http');
  gone.says('GET /');
  gone.channel.onClose();
  expect(await gone.now()).toBeUndefined();
});

test('a client that says more than any opening has is not listened to for longer', async () => {
  const at = opening('tls');
  // The start of a record that continues.
  at.says('\x16\x03\x01\x40\0\x01\0\xff\xff');
  for (let part = 0; part < 5; part++) at.says('x'.repeat(16_000));
  expect(await at.now()).toEqual(nothing);
});
