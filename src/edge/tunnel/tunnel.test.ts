import { expect, test } from 'bun:test';
import { Share } from '../../base/concurrency/share.ts';
import {
  closeCode,
  closeFrame,
  frameHeadBytesMax,
  maskedFrame,
  opcode,
  shortFrame,
  writeFrameHead,
} from '../../base/websocket-frames.ts';
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
      if (done.end) return -1;
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

/** What happens before anybody listens. */
type Before = (upstream: Upstream, near: ReturnType<typeof memorySocket>) => void;

/** A tunnel whose client sends what it is given, and whose server has room for `room` bytes. */
function scene(room?: number, halfCloses = true, before: Before = () => {}) {
  const [near, far] = [memorySocket(), memorySocket(room)];
  const upstream = new Upstream({ add() {}, give() {}, forget() {} });
  upstream.opened(far.socket);
  const [limits, clock] = [limitsWithin(1000), { nowMs: 0 }];
  const client = {
    ...{
      context: { limits, clock, scratch: Buffer.alloc(1000) },
      sendBuffer: new SendBuffer(near.socket),
      input: null as Buffer | null,
    },
    ...{ inputAt: 0, isPaused: false, deadlineMs: 0 },
    used: 0,
    use: (position: number) => void (client.used = position),
    /** Its place was left to the client, who may not have read everything. */
    keptPlace: false,
    giveBack(taken: Share) {
      client.keptPlace = true;
      taken.give();
    },
    pause: () => void (client.isPaused = true),
    resume: () => void (client.isPaused = false),
    ended: '' as '' | 'close' | 'terminate',
    close: () => void (client.ended ||= 'close'),
    terminate: () => void (client.ended ||= 'terminate'),
  };
  const place = new Share('sandbox', 9, null);
  place.take();
  const tunnel = new Tunnel(client as unknown as Client, upstream, place, halfCloses);
  before(upstream, near);
  tunnel.begin();
  return {
    ...{ near, far, client, upstream, tunnel, place, clock },
    send(...frames: Buffer[]) {
      // It begins in the middle of the runtime's buffer, behind bytes that are already used.
      client.input = Buffer.concat([Buffer.from('###used'), ...frames]).subarray(3);
      client.inputAt = 4;
      expect(tunnel.clientInput()).toBe(false);
    },
  };
}

const binary = (text: string) => maskedFrame(opcode.binary, Buffer.from(text, 'latin1'));
const letters = Array.from({ length: 5000 }, (_, i) => String.fromCharCode(97 + (i % 26)));

test('small messages that come together are written at once, and wait as one for who does not read', () => {
  const reading = scene();
  reading.send(...letters.map(binary));
  expect(reading.far.done).toMatchObject({ writes: 1, sent: letters.join('') });
  expect(reading.client).toMatchObject({ isPaused: false, used: reading.client.input?.length });
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
  closing.send(
    binary('ab'),
    binary(''),
    binary('cd'),
    maskedFrame(opcode.close),
    binary('ef'),
    maskedFrame(opcode.ping),
  );
  expect(closing.far.done).toEqual({ writes: 1, sent: 'abcd', end: 'close' });
  expect(closing.near.done.sent).toBe(closeFrame(1000).toString('latin1'));
});

test('messages are put together however they are cut', () => {
  const at = scene();
  const whole = Buffer.concat([binary('a'.repeat(200)), binary('b'), binary('c'.repeat(70_000)), binary('d')]);
  for (let from = 0; from < whole.length; from += 997) at.send(Buffer.from(whole.subarray(from, from + 997)));
  expect(at.far.done.sent).toBe(`${'a'.repeat(200)}b${'c'.repeat(70_000)}d`);
});

/** The bytes of frames, as text. */
const sent = (...frames: Uint8Array[]) => Buffer.concat(frames).toString('latin1');
/** What the server says, as a message to the client. */
const message = (text: string) => Buffer.concat([head(text.length), Buffer.from(text, 'latin1')]);
function head(length: number): Buffer {
  const bytes = Buffer.alloc(frameHeadBytesMax);
  return bytes.subarray(0, writeFrameHead(bytes, opcode.binary, length));
}
const noMoreFollows = shortFrame(opcode.text);

test('what the server says is a message, however long it is and if it came before anybody listened', () => {
  const early = ['first', 'x'.repeat(999 - frameHeadBytesMax)];
  const at = scene(undefined, true, upstream => (upstream.early = early.map(text => Buffer.from(text))));
  // At once, if they fit.
  expect(at.near.done.writes).toBe(2);
  const later = ['y'.repeat(1000 - frameHeadBytesMax), 'z'.repeat(1001 - frameHeadBytesMax), 'z'.repeat(70_000)];
  for (const text of later) at.tunnel.upstreamData(Buffer.from(text));
  expect(at.near.done.writes).toBe(2 + 1 + 2 + 2);
  expect(at.near.done.sent).toBe(sent(...[...early, ...later].map(message)));
  expect([at.upstream.early, at.upstream.user as unknown]).toEqual([null, at.tunnel]);
});

test('whatever passes in either direction keeps the connection alive', () => {
  const at = scene();
  at.clock.nowMs = 5;
  at.send(binary('a'));
  const first = at.client.deadlineMs;
  expect(first).toBeGreaterThan(5);
  at.clock.nowMs = 7;
  at.tunnel.upstreamData(Buffer.from('b'));
  expect(at.client.deadlineMs).toBe(first + 2);
});

test('a server is listened to at once, unless its client does not read', () => {
  for (const isReading of [true, false]) {
    const resumed: boolean[] = [];
    const before = (upstream: Upstream, near: ReturnType<typeof memorySocket>) => {
      if (!isReading) {
        near.make(0);
        upstream.early = [Buffer.from('early')];
      }
      upstream.resume = () => void resumed.push(true);
    };
    scene(undefined, true, before);
    expect(resumed).toEqual(isReading ? [true] : []);
  }
});

test('either side waits while the other one takes no more', () => {
  const at = scene(0);
  const acts: string[] = [];
  at.far.socket.pause = () => void acts.push('pause');
  at.far.socket.resume = () => void acts.push('resume');
  at.send(binary('a'));
  expect(at.client.isPaused).toBe(true);
  at.tunnel.upstreamDrained();
  expect(at.client.isPaused).toBe(false);
  at.tunnel.upstreamData(Buffer.from('a'));
  expect(acts).toEqual([]);
  at.near.make(0);
  at.tunnel.upstreamData(Buffer.from('b'));
  expect(acts).toEqual(['pause']);
  at.tunnel.clientDrained();
  expect(acts).toEqual(['pause', 'resume']);
});

test('a ping is answered, unless its sender does not read', () => {
  const at = scene();
  at.send(maskedFrame(opcode.ping, Buffer.from('now')));
  expect(at.near.done.sent).toBe(sent(shortFrame(opcode.pong, Buffer.from('now'))));
  at.send(maskedFrame(opcode.pong));
  at.near.make(0);
  at.tunnel.upstreamData(Buffer.from('b'));
  at.send(maskedFrame(opcode.ping));
  at.near.make(Number.POSITIVE_INFINITY);
  at.client.sendBuffer.flush();
  expect(at.near.done.sent).toBe(sent(shortFrame(opcode.pong, Buffer.from('now')), message('b')));
});

test('the server’s last byte is said once, and the connection closes when the client has sent its own', () => {
  const at = scene();
  at.tunnel.upstreamEnded();
  expect([at.near.done.sent, at.client.ended, at.place.taken]).toEqual([sent(noMoreFollows), '', 1]);
  at.send(binary('rest'), maskedFrame(opcode.text));
  expect(at.far.done).toMatchObject({ sent: 'rest', end: 'shutdown' });
  expect(at.near.done.sent).toBe(sent(noMoreFollows, closeFrame(closeCode.normal)));
  expect([at.client.ended, at.place.taken, at.upstream.user]).toEqual(['close', 0, null]);
  expect(at.client.keptPlace).toBe(true);
});

test('a client that has sent its last byte hears the close when the server has too', () => {
  const at = scene();
  at.send(maskedFrame(opcode.text));
  at.tunnel.upstreamEnded();
  at.tunnel.upstreamEnded();
  expect([at.near.done.sent, at.client.ended]).toEqual([sent(closeFrame(closeCode.normal)), 'close']);
});

test('for a client that did not ask for half-closed connections, the server’s end is the end', () => {
  const at = scene(undefined, false);
  at.tunnel.upstreamEnded();
  expect([at.near.done.sent, at.client.ended]).toEqual([sent(closeFrame(closeCode.normal)), 'close']);
});

test('a server that ended before anybody listened has ended', () => {
  const at = scene(undefined, false, upstream => (upstream.ended = true));
  expect(at.client.ended).toBe('close');
});

test.each([
  ['text', true, [maskedFrame(opcode.text, Buffer.from('a'))], closeCode.unsupported],
  ['bytes behind the last one', true, [maskedFrame(opcode.text), binary('a')], closeCode.unsupported],
  ['an end that was not agreed on', false, [maskedFrame(opcode.text)], closeCode.unsupported],
  ['what is no WebSocket', true, [Buffer.from('GET / HTTP/1.1')], closeCode.protocolError],
])('%s breaks the server off, and its sender is told why', (_, halfCloses, frames, code) => {
  const at = scene(undefined, halfCloses);
  at.send(...frames);
  expect(at.near.done.sent).toBe(sent(closeFrame(code)));
  at.send(binary('late'));
  expect(at.near.done.sent).toBe(sent(closeFrame(code)));
  expect([at.client.ended, at.place.taken, at.far.done.sent]).toEqual(['close', 0, '']);
  expect(at.far.done.end).not.toBe('close');
});

test('a server that closes after either side’s last byte has closed in order, and else it broke off', () => {
  const closed = (error: Error | undefined, act: (at: ReturnType<typeof scene>) => void) => {
    const at = scene();
    act(at);
    at.tunnel.upstreamClosed(error);
    expect([at.place.taken, at.upstream.user]).toEqual([0, null]);
    return at.client.ended;
  };
  expect(closed(undefined, ({ tunnel }) => tunnel.upstreamEnded())).toBe('close');
  expect(closed(undefined, ({ send }) => send(maskedFrame(opcode.text)))).toBe('close');
  expect(closed(undefined, () => {})).toBe('terminate');
  expect(closed(new Error('reset'), ({ tunnel }) => tunnel.upstreamEnded())).toBe('terminate');
});

test('a client that goes without a word breaks the server off, and is let go of', () => {
  const at = scene();
  at.tunnel.clientClosed();
  expect([at.far.done.end, at.place.taken, at.upstream.user]).toEqual(['terminate', 0, null]);
  for (const act of ['clientEnded', 'clientGone'] as const) {
    const gone = scene();
    gone.tunnel[act]();
    expect(gone.client.ended).toBe('terminate');
  }
});

test('what is cut is broken off, once, and passes nothing on', () => {
  const at = scene();
  at.tunnel.cut();
  expect([at.client.ended, at.place.taken, at.upstream.user]).toEqual(['terminate', 0, null]);
  expect(at.client.keptPlace).toBe(false);
  at.tunnel.cut();
  at.tunnel.upstreamEnded();
  at.tunnel.upstreamClosed(undefined);
  at.tunnel.clientClosed();
  at.send(binary('late'));
  expect([at.place.taken, at.near.done.sent, at.far.done]).toEqual([0, '', { writes: 0, sent: '', end: '' }]);
});
