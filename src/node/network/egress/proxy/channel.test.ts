import { expect, test } from 'bun:test';
import { SocketChannel, channelHandlers, splice, type Channel } from './channel.ts';

/** A socket that takes this many bytes before it is full, and records what was done with it. */
class FakeSocket {
  room = Infinity;
  taken = '';
  readonly said: string[] = [];

  write(bytes: Uint8Array): number {
    if (this.room < 0) return -1;
    const part = bytes.subarray(0, this.room);
    this.room -= part.length;
    this.taken += Buffer.from(part).toString();
    return part.length;
  }
  pause = () => void this.said.push('pause');
  resume = () => void this.said.push('resume');
  end = () => void this.said.push('end');
  shutdown = () => void this.said.push('shutdown');
  terminate = () => void this.said.push('terminate');
}

function opened() {
  const socket = new FakeSocket();
  const channel = new SocketChannel(socket as unknown as Bun.Socket<SocketChannel>);
  const heard: string[] = [];
  const user = {
    data: (bytes: Buffer) => void heard.push(bytes.toString()),
    drained: () => void heard.push('(drained)'),
    ended: () => void heard.push('(ended)'),
    closed: () => void heard.push('(closed)'),
  };
  const drain = (room: number) => {
    socket.room = room;
    channel.onDrain();
  };
  return { socket, channel, heard, user, drain };
}
const bytes = (text: string) => Buffer.from(text);

test('what came before anybody listened is delivered first, with the end and the close', () => {
  const { channel, heard, user } = opened();
  channel.onData(bytes('a'));
  channel.onData(bytes('b'));
  channel.onEnd();
  channel.onClose();
  channel.use(user);
  expect(heard).toEqual(['a', 'b', '(ended)', '(closed)']);
});

test('bytes that were given back reach the next user, before those that came since', () => {
  const { channel, heard, user } = opened();
  channel.use({ ...user, data: () => heard.push('of the first') });
  channel.unread(bytes('rest'));
  channel.unread(bytes(''));
  channel.onData(bytes('more'));
  channel.use(user);
  expect(heard).toEqual(['rest', 'more']);
});

test('a full socket keeps what it did not take, in its order, and then says so', () => {
  const { socket, channel, heard, user, drain } = opened();
  channel.use(user);
  socket.room = 3;
  expect([channel.write(bytes('ab')), channel.write(bytes('cdef')), channel.write(bytes('gh'))]).toEqual([
    ...[true, false, false],
  ]);
  drain(2);
  expect([socket.taken, heard]).toEqual(['abcde', []]);
  drain(0);
  socket.room = Infinity;
  // There is room again, but bytes that wait are sent first.
  expect(channel.write(bytes('!'))).toBe(false);
  expect([socket.taken, heard]).toEqual(['abcde', []]);
  drain(Infinity);
  expect([socket.taken, heard]).toEqual(['abcdefgh!', ['(drained)']]);
  expect([channel.write(bytes('i')), channel.write(bytes(''))]).toEqual([true, true]);
});

test('a user that waits for room is not left waiting by a socket that is gone', () => {
  const { socket, channel, heard, user, drain } = opened();
  channel.use(user);
  socket.room = 0;
  expect(channel.write(bytes('lost'))).toBe(false);
  drain(-1);
  expect(heard).toEqual(['(drained)']);
  drain(Infinity);
  expect(socket.taken).toBe('');
});

test('a connection ends once, when all that was written is sent', () => {
  const { socket, channel, user, drain } = opened();
  channel.use(user);
  socket.room = 1;
  channel.write(bytes('abc'));
  channel.end();
  channel.end();
  drain(1);
  expect(socket.said).toEqual([]);
  drain(Infinity);
  expect([socket.taken, socket.said]).toEqual(['abc', ['shutdown']]);
  channel.onEnd();
  expect(socket.said).toEqual(['shutdown', 'end']);
});

test('ending after the peer closes the channel, once the last bytes are sent', () => {
  const { socket, channel, user, drain } = opened();
  channel.use(user);
  socket.room = 0;
  channel.write(bytes('last'));
  channel.end();
  channel.onEnd();
  expect(socket.said).toEqual([]);
  drain(Infinity);
  expect([socket.taken, socket.said]).toEqual(['last', ['end']]);
});

test('a connection that is gone takes nothing more and is left alone', () => {
  const { socket, channel, heard, user } = opened();
  let gone = 0;
  channel.whenGone = () => gone++;
  channel.use(user);
  channel.onClose();
  channel.write(bytes('x'));
  for (const act of ['end', 'abort', 'pause', 'resume', 'hold', 'letGo'] as const) channel[act]();
  expect([heard, socket.taken, socket.said, gone]).toEqual([['(closed)'], '', [], 1]);
});

test('a connection that went while it was held or paused is not resumed', () => {
  const [held, paused] = [opened(), opened()];
  held.channel.hold();
  paused.channel.pause();
  for (const { channel } of [held, paused]) channel.onClose();
  held.channel.letGo();
  paused.channel.resume();
  expect([held.socket.said, paused.socket.said]).toEqual([['pause'], ['pause']]);
});

test('a paused or held channel delivers nothing until it is neither', () => {
  const { socket, channel } = opened();
  const after = (...acts: ('pause' | 'resume' | 'hold' | 'letGo')[]) => {
    for (const act of acts) channel[act]();
    return socket.said.splice(0);
  };
  expect(after('pause', 'pause')).toEqual(['pause']);
  expect(after('resume', 'resume')).toEqual(['resume']);
  expect(after('hold', 'hold')).toEqual(['pause']);
  expect(after('pause', 'letGo')).toEqual([]);
  expect(after('hold', 'resume')).toEqual([]);
  expect(after('letGo')).toEqual(['resume']);
});

test('a channel that was handed over gets nothing more of its socket, and its time is charged until then', () => {
  const { socket, heard, user } = opened();
  const charged: number[] = [];
  const share = { charge: (ms: number) => charged.push(ms) };
  const channel = new SocketChannel(socket as never, share as never);
  channel.use(user);
  const bun = { data: channel, terminate: socket.terminate } as unknown as Bun.Socket<SocketChannel>;
  void channelHandlers.data?.(bun, bytes('a') as never);
  void channelHandlers.end?.(bun);
  void channelHandlers.drain?.(bun);
  expect(heard).toEqual(['a', '(ended)', '(drained)']);
  channel.isHandedOver = true;
  void channelHandlers.data?.(bun, bytes('b') as never);
  void channelHandlers.close?.(bun);
  expect([heard.length, charged.length]).toEqual([3, 3]);
  // The durations were charged, not the times of day.
  expect(Math.max(...charged)).toBeLessThan(performance.now());
  void channelHandlers.error?.(bun, new Error('ours'));
  expect(socket.said).toEqual(['terminate']);
});

test('two connections that are spliced pass on bytes, fullness and ends, and a break breaks the other', () => {
  const [a, b] = [opened(), opened()];
  splice(a.channel as Channel, b.channel as Channel);
  b.socket.room = 1;
  a.channel.onData(bytes('abc'));
  expect([b.socket.taken, a.socket.said]).toEqual(['a', ['pause']]);
  b.drain(Infinity);
  a.channel.onData(bytes('d'));
  expect([b.socket.taken, a.socket.said]).toEqual(['abcd', ['pause', 'resume']]);
  a.channel.onEnd();
  expect(b.socket.said).toEqual(['shutdown']);
  b.channel.onData(bytes('answer'));
  expect(a.socket.taken).toBe('answer');
  b.channel.onClose();
  expect(a.socket.said).toEqual(['pause', 'resume', 'terminate']);
});

test('two connections that are spliced end in peace when both sides have said all', () => {
  const [a, b] = [opened(), opened()];
  splice(a.channel as Channel, b.channel as Channel);
  a.channel.onEnd();
  b.channel.onEnd();
  b.channel.onClose();
  a.channel.onClose();
  expect([a.socket.said, b.socket.said]).toEqual([['end'], ['shutdown', 'end']]);
});

test('a peer that closes without a word leaves the channel closed, unless that was handed over', () => {
  const { channel, heard, user } = opened();
  channel.use(user);
  const bun = { data: channel } as unknown as Bun.Socket<SocketChannel>;
  void channelHandlers.close?.(bun);
  expect([heard, channel.isClosed]).toEqual([['(closed)'], true]);
});
