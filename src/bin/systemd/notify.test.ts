import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cString, libc } from '../../node/native/libc.ts';
import { serviceManager } from './notify.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-notify-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A datagram socket like a service manager's. Datagrams on one machine have arrived when `send` returns. */
function listen(path: string) {
  const socket = libc.socket(1, 2, 0);
  const name = path.startsWith('@') ? Buffer.from(`\0${path.slice(1)}`) : cString(path);
  const address = Buffer.alloc(2 + name.length);
  address.writeUInt16LE(1);
  name.copy(address, 2);
  expect(libc.bind(socket, address, address.length)).toBe(0);
  return {
    next() {
      const bytes = Buffer.alloc(4096);
      const dontWait = 0x40;
      const length = Number(libc.recv(socket, bytes, BigInt(bytes.length), dontWait));
      return length < 0 ? undefined : bytes.toString('utf8', 0, length);
    },
    [Symbol.dispose]: () => void libc.close(socket),
  };
}

for (const path of [join(folder, 'socket'), `@atoll-notify-${process.pid}`]) {
  test(`a manager at ${path.startsWith('@') ? 'an abstract name' : 'a path'} hears of it`, () => {
    using socket = listen(path);
    serviceManager({ NOTIFY_SOCKET: path }).notify('READY=1', 'STATUS=serving é');
    expect(socket.next()).toBe('READY=1\nSTATUS=serving é');
    expect(socket.next()).toBeUndefined();
  });
}

test('nobody who listens, a gone socket and a path that is too long are no failure', () => {
  for (const NOTIFY_SOCKET of ['', join(folder, 'gone'), `/${'x'.repeat(200)}`])
    expect(() => serviceManager({ NOTIFY_SOCKET }).notify('READY=1')).not.toThrow();
});

test('the watchdog is for the process that it names', () => {
  expect(serviceManager({ WATCHDOG_USEC: '60000000' }).watchdogMs).toBe(60_000);
  expect(serviceManager({ WATCHDOG_USEC: '60000000', WATCHDOG_PID: String(process.pid) }).watchdogMs).toBe(60_000);
  expect(serviceManager({ WATCHDOG_USEC: '60000000', WATCHDOG_PID: '1' }).watchdogMs).toBeUndefined();
  expect(serviceManager({}).watchdogMs).toBeUndefined();
});
