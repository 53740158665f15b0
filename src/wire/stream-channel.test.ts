import { expect, test } from 'bun:test';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { type ByteSocket, StreamChannel, WaitingBytes } from './stream-channel.ts';

const MiB = 1 << 20;
/** Waiting bytes are not copied: they may be the same bytes again and again. */
const zeros = Buffer.alloc(16 * MiB);

/** A channel whose messages are plain bytes, on a socket that takes `room` of them. */
class PlainChannel extends StreamChannel {
  readonly done: string[];

  constructor(socket: ByteSocket, done: string[], waiting?: WaitingBytes) {
    super(socket, waiting);
    this.done = done;
  }
  send(text: string): void {
    this.write(Buffer.from(text));
  }
  sendBytes(count: number): void {
    this.write(zeros.subarray(0, count));
  }
  received(bytes: Uint8Array): void {
    this.deliver(Buffer.from(bytes).toString(), undefined);
  }
  receivedFile(text: string, file: number): void {
    this.deliver(text, file);
  }
  protected release(): void {
    this.done.push('release');
  }
  protected override crowded(): void {
    this.done.push('crowded');
  }
  protected override hasRoom(): void {
    this.done.push('has room');
  }
}

function opened(room = Number.POSITIVE_INFINITY, waiting?: WaitingBytes) {
  const done: string[] = [];
  const socket = {
    room,
    taken: 0,
    text: '',
    write(bytes: Uint8Array) {
      if (socket.room < 0) return -1;
      const part = bytes.subarray(0, socket.room);
      socket.room -= part.length;
      socket.taken += part.length;
      if (part.length < 100) socket.text += Buffer.from(part).toString();
      return part.length;
    },
    terminate: () => void done.push('terminate'),
  };
  const channel = new PlainChannel(socket, done, waiting);
  const heard: string[] = [];
  const listener = {
    message: (text: string, file?: number) => void heard.push(`${text}${file === undefined ? '' : ' with file'}`),
    closed: () => void heard.push('(closed)'),
  };
  const drain = (next: number) => {
    socket.room = next;
    channel.drained();
  };
  return { socket, channel, done, heard, listener, drain };
}

test('bytes that a socket does not take wait, in order', () => {
  const { socket, channel, drain } = opened(2);
  channel.send('abc');
  socket.room = 9;
  channel.send('def');
  expect(socket.text).toBe('ab');
  drain(2);
  expect(socket.text).toBe('abcd');
  drain(9);
  channel.send('g');
  expect(socket.text).toBe('abcdefg');
});

test('bytes that came before there was a listener come first, and the end with them', () => {
  const { channel, heard, listener } = opened();
  channel.received(Buffer.from('a'));
  channel.listen(listener);
  channel.received(Buffer.from('b'));
  channel.closed();
  channel.closed();
  expect(heard).toEqual(['a', 'b', '(closed)']);
  const late = opened();
  late.channel.closed();
  late.channel.listen(late.listener);
  expect(late.heard).toEqual(['(closed)']);
});

test('a channel closes once, and releases what it holds', () => {
  const { channel, socket, done, heard, listener, drain } = opened(0);
  channel.listen(listener);
  channel.send('waits');
  channel.close();
  channel.close();
  channel.closed();
  channel.send('late');
  drain(99);
  expect([done, heard, socket.text]).toEqual([['terminate', 'release'], ['(closed)'], '']);
});

test('a file that nobody has taken is closed with the channel', () => {
  const { channel, heard, listener } = opened();
  const [unread, taken] = [openSync('/dev/null', 'r'), openSync('/dev/null', 'r')];
  channel.receivedFile('a', taken);
  channel.listen(listener);
  expect(heard).toEqual(['a with file']);
  channel.close();
  expect(fstatSync(taken).isCharacterDevice()).toBe(true);
  closeSync(taken);
  const other = opened();
  other.channel.receivedFile('b', unread);
  other.channel.close();
  expect(() => fstatSync(unread)).toThrow('EBADF');
});

test('senders that can wait do so while much waits, until half of it is gone', () => {
  const { channel, done, drain } = opened(0);
  channel.sendBytes(8 * MiB);
  expect(done).toEqual([]);
  channel.sendBytes(1);
  channel.sendBytes(MiB);
  expect(done).toEqual(['crowded']);
  drain(5 * MiB);
  expect(done).toEqual(['crowded']);
  drain(1);
  expect(done).toEqual(['crowded', 'has room']);
  drain(MiB);
  expect(done).toEqual(['crowded', 'has room']);
});

test('a reader that is very far behind counts as gone', () => {
  const { channel, done } = opened(0);
  for (let part = 0; part < 15; part++) channel.sendBytes(16 * MiB);
  expect(done).toEqual(['crowded']);
  channel.sendBytes(16 * MiB);
  expect(done).toEqual(['crowded', 'terminate', 'release']);
});

test('what waits for one reader on all of its channels counts together, small pieces by what they take', () => {
  const waiting = new WaitingBytes(2 * MiB);
  const [one, two, later] = [opened(0, waiting), opened(0, waiting), opened(0, waiting)];
  one.channel.sendBytes(MiB);
  two.channel.sendBytes(MiB / 2);
  let sent = 0;
  for (; !two.done.includes('terminate') && sent < MiB; sent++) two.channel.send('a');
  expect(sent).toBeLessThan(MiB / 2 / 100);
  expect(one.done).toEqual([]);
  // Bytes that were given up or sent no longer count as waiting.
  one.drain(MiB);
  later.channel.sendBytes(2 * MiB - 1000);
  expect(later.done).toEqual([]);
  later.channel.sendBytes(1000);
  expect(later.done).toEqual(['terminate', 'release']);
});

test('a closed socket takes nothing, and its close says so', () => {
  const { channel, done, drain } = opened(-1);
  channel.send('a');
  drain(-1);
  expect(done).toEqual([]);
});
