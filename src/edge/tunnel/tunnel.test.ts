import { expect, test } from 'bun:test';
import { Share } from '../../base/concurrency/share.ts';
import { closeFrame, maskedFrame, opcode } from '../../base/websocket-frames.ts';
import type { Client } from '../connection/client.ts';
import { limitsWithin } from '../limits.ts';
import { type ByteSocket, SendBuffer } from '../send-buffer.ts';
import { Upstream } from '../upstream/upstream.ts';
import { Tunnel } from './tunnel.ts';

/** Counts what it is told to write, and takes it while it has room. */
function memorySocket(room = Number.POSITIVE_INFINITY) {
  const done = { writes: 0, sent: '', end: '' };
  const end = (name: string) => () => void (done.end ||= name);
  const socket: ByteSocket = {
    ...{ remoteAddress: '', bytesWritten: 0, pause() {}, resume() {} },
    write(bytes, start = 0, length = bytes.length - start) {
      done.writes++;
      const taken = Math.min(length, room);
      room -= taken;
      done.sent += Buffer.from(bytes.subarray(start, start + taken)).toString('latin1');
      return taken;
    },
    ...{ shutdown: end('shutdown'), close: end('close'), terminate: end('terminate') },
  };
  return { done, socket, make: (bytes: number) => void (room = bytes) };
}

/** A tunnel whose client sends what it is given, and whose server has room for so many bytes. */
function scene(room?: number) {
  const [near, far] = [memorySocket(), memorySocket(room)];
  const upstream = new Upstream({ add() {}, give() {}, forget() {} });
  upstream.opened(far.socket);
  const [limits, clock] = [limitsWithin(1000), { nowMs: 0 }];
  const client = {
    ...{ context: { limits, clock }, sendBuffer: new SendBuffer(near.socket), input: null as Buffer | null },
    ...{ inputAt: 0, isPaused: false, deadlineMs: 0 },
    use() {},
    giveBack: (taken: Share) => taken.give(),
    pause: () => void (client.isPaused = true),
    resume: () => void (client.isPaused = false),
    close() {},
    terminate() {},
  };
  const place = new Share('sandbox', 9, null);
  place.take();
  const tunnel = new Tunnel(client as unknown as Client, upstream, place, true);
  tunnel.begin();
  return {
    ...{ near, far, client, upstream },
    send(...frames: Buffer[]) {
      client.input = Buffer.concat(frames);
      tunnel.clientInput();
    },
  };
}

const binary = (text: string) => maskedFrame(opcode.binary, Buffer.from(text, 'latin1'));
const letters = Array.from({ length: 5000 }, (_, i) => String.fromCharCode(97 + (i % 26)));

test('small messages that come together are written at once, and wait as one for who does not read', () => {
  const reading = scene();
  reading.send(...letters.map(binary));
  expect(reading.far.done).toMatchObject({ writes: 1, sent: letters.join('') });
  const blocked = scene(1);
  blocked.send(...letters.map(binary));
  expect(blocked.client.isPaused).toBe(true);
  blocked.far.make(Number.POSITIVE_INFINITY);
  expect(blocked.upstream.sendBuffer.flush()).toBe(true);
  expect(blocked.far.done).toMatchObject({ writes: 2, sent: letters.join('') });
});

test('what stands before an end of the client’s bytes, or of the connection, is written before that', () => {
  const half = scene();
  half.send(binary('ab'), maskedFrame(opcode.ping), binary('cd'), maskedFrame(opcode.text));
  expect(half.far.done).toEqual({ writes: 1, sent: 'abcd', end: 'shutdown' });
  const closing = scene();
  closing.send(binary('ab'), binary(''), binary('cd'), maskedFrame(opcode.close), binary('ef'));
  expect(closing.far.done).toEqual({ writes: 1, sent: 'abcd', end: 'close' });
  expect(closing.near.done.sent).toBe(closeFrame(1000).toString('latin1'));
});

test('messages are put together however they are cut', () => {
  const at = scene();
  const whole = Buffer.concat([binary('a'.repeat(200)), binary('b'), binary('c'.repeat(70_000)), binary('d')]);
  for (let from = 0; from < whole.length; from += 997) at.send(Buffer.from(whole.subarray(from, from + 997)));
  expect(at.far.done.sent).toBe(`${'a'.repeat(200)}b${'c'.repeat(70_000)}d`);
});
