import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { closeFile, filePair, receiveFile, sendFile } from './files.ts';
import { FrameReader, frameOf } from './frame.ts';
import { SocketChannel } from './socket-channel.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A channel whose other side is the test, and the other end of its second socket. */
function opened({ withFiles = true, messageBytesMax = 1_000 } = {}) {
  const [own, other] = filePair();
  const state = { terminated: 0 };
  const sent: string[] = [];
  const reader = new FrameReader();
  const write = (bytes: Uint8Array) => {
    reader.push(bytes, (text, withFile) => void sent.push(withFile ? `${text} with file` : text));
    return bytes.length;
  };
  const socket = { write, terminate: () => void state.terminated++ };
  const channel = new SocketChannel(socket, withFiles ? own : null, messageBytesMax);
  if (!withFiles) closeFile(own);
  const heard: string[] = [];
  const files: number[] = [];
  channel.listen({
    message(text, file) {
      heard.push(file === undefined ? text : `${text} with file`);
      if (file !== undefined) files.push(file);
    },
    closed: () => void heard.push('(closed)'),
  });
  return { channel, own, other, state, sent, heard, files };
}

const open = () => openSync('/dev/null', 'r');
const isOpen = (file: number) => {
  try {
    return fstatSync(file) !== undefined;
  } catch {
    return false; // closed
  }
};
/** Receives all files that are ready, and answers their numbers. */
function takeAll(end: number): number[] {
  const ids: number[] = [];
  for (let got = receiveFile(end); typeof got === 'object'; got = receiveFile(end)) {
    closeSync(got.file);
    ids.push(got.id);
  }
  return ids;
}

test('a file goes before its message, and the sender’s is closed', () => {
  const { channel, other, sent } = opened();
  const files = [open(), open()] as const;
  channel.send('a', files[0]);
  channel.send('b');
  channel.send('c', files[1]);
  expect([sent, takeAll(other)]).toEqual([
    ['a with file', 'b', 'c with file'],
    [1, 2],
  ]);
  expect(files.map(isOpen)).toEqual([false, false]);
  channel.close();
  closeFile(other);
});

test('files without room wait, in order, and other messages do not', () => {
  const { channel, other, sent, state } = opened();
  let count = 0;
  while (sent.length === count) channel.send(`${++count}`, open());
  const waits = open();
  channel.send('last', waits);
  channel.send('word');
  expect([sent.at(-1), isOpen(waits)]).toEqual(['word', true]);
  jest.advanceTimersByTime(100);
  expect(sent.at(-1)).toBe('word');
  const first = takeAll(other);
  jest.advanceTimersByTime(1);
  expect(sent.slice(-2)).toEqual([`${count} with file`, 'last with file']);
  expect([...first, ...takeAll(other)]).toEqual(Array.from({ length: count + 1 }, (_, index) => index + 1));
  expect([state.terminated, isOpen(waits)]).toEqual([0, false]);
  channel.close();
  closeFile(other);
});

test('a reader that takes no files counts as gone after a while, or when too many wait', () => {
  for (const reader of ['late', 'behind'] as const) {
    const { channel, other, own, sent, heard } = opened();
    let count = 0;
    while (sent.length === count) channel.send(`${++count}`, open());
    const waits = open();
    channel.send('last', waits);
    if (reader === 'late') {
      jest.advanceTimersByTime(4_999);
      expect(heard).toEqual([]);
      jest.advanceTimersByTime(1);
    } else {
      for (let waiting = 2; waiting < 1_024; waiting++) channel.send('more', open());
      expect(heard).toEqual([]);
      channel.send('too many', open());
    }
    expect([heard, isOpen(waits), isOpen(own)]).toEqual([['(closed)'], false, false]);
    takeAll(other);
    closeFile(other);
    jest.advanceTimersByTime(10);
    expect(sent).toHaveLength(count - 1);
  }
});

test('a reader that is gone closes the channel, and all files that it did not take', () => {
  const { channel, other, state, sent } = opened();
  closeFile(other);
  const file = open();
  channel.send('a', file);
  expect([state.terminated, sent, isOpen(file)]).toEqual([1, [], false]);
});

test('a closed channel sends nothing, and closes the file that it should send', () => {
  const { channel, own, other, sent } = opened();
  channel.close();
  const file = open();
  channel.send('a', file);
  channel.send('b');
  expect([sent, isOpen(file), isOpen(own)]).toEqual([[], false, false]);
  channel.received(frameOf('late', false));
  closeFile(other);
});

test('a message with a file gets the one of its number', () => {
  const { channel, other, heard, files, state } = opened();
  const file = open();
  for (const id of [1, 2]) sendFile(other, file, id);
  channel.received(Buffer.concat([frameOf('a', true), frameOf('b', false), frameOf('c', true)]));
  expect([heard, files.map(isOpen)]).toEqual([
    ['a with file', 'b', 'c with file'],
    [true, true],
  ]);
  // The next file has another number.
  sendFile(other, file, 2);
  const before = openSync('/dev/null', 'r');
  closeSync(before);
  channel.received(Buffer.concat([frameOf('d', true), frameOf('e', false)]));
  expect([heard.slice(3), state.terminated]).toEqual([['(closed)'], 1]);
  expect(isOpen(before)).toBe(false);
  for (const one of [file, ...files]) closeSync(one);
  closeFile(other);
});

test('a message whose file does not come, or can’t, closes the channel', () => {
  for (const withFiles of [true, false]) {
    const { channel, other, heard } = opened({ withFiles });
    channel.received(frameOf('a', true));
    expect(heard).toEqual(['(closed)']);
    closeFile(other);
  }
  const none = opened({ withFiles: false });
  const file = open();
  none.channel.send('a', file);
  expect([none.heard, none.sent, isOpen(file)]).toEqual([['(closed)'], [], false]);
  closeFile(none.other);
});

test('invalid bytes close the channel', () => {
  const { channel, other, heard } = opened({ messageBytesMax: 3 });
  channel.received(frameOf('abc', false));
  expect(heard).toEqual(['abc']);
  channel.received(frameOf('abcd', false));
  expect(heard).toEqual(['abc', '(closed)']);
  closeFile(other);
});
