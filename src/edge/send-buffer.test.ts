import { expect, test } from 'bun:test';
import { SendBuffer } from './send-buffer.ts';

/** A buffer on a socket that takes `room` bytes before it is full; negative: the socket is closed. */
function opened(room: number) {
  const socket = {
    room,
    taken: '',
    shutdowns: 0,
    write(bytes: Uint8Array, start = 0, length = bytes.length - start) {
      if (socket.room < 0) return -1;
      const part = bytes.subarray(start, start + Math.min(length, socket.room));
      socket.room -= part.length;
      socket.taken += Buffer.from(part).toString();
      return part.length;
    },
    shutdown: () => void socket.shutdowns++,
  };
  const buffer = new SendBuffer(socket);
  const write = (text: string, borrowed = false) => buffer.write(Buffer.from(text), 0, text.length, borrowed);
  const flush = (next: number) => {
    socket.room = next;
    return buffer.flush();
  };
  return { socket, buffer, write, flush };
}

test('what the socket takes at once is sent, and only the part that was asked for', () => {
  const { socket, buffer } = opened(Infinity);
  expect(buffer.write(Buffer.from('abcdef'), 2, 4, true)).toBe(true);
  expect([socket.taken, buffer.idle]).toEqual(['cd', true]);
});

test('what it does not take waits in its order, until all is sent', () => {
  const { socket, buffer, write, flush } = opened(1);
  expect([buffer.write(Buffer.from('-abc-'), 1, 4, false), buffer.idle]).toEqual([false, false]);
  socket.room = 100;
  expect(write('def')).toBe(false);
  expect([socket.taken, flush(1), flush(0), socket.taken]).toEqual(['a', false, false, 'ab']);
  expect([flush(2), buffer.idle, socket.taken]).toEqual([false, false, 'abcd']);
  expect([flush(9), buffer.idle, socket.taken]).toEqual([true, true, 'abcdef']);
  expect([write('g'), socket.taken]).toEqual([true, 'abcdefg']);
});

test('borrowed bytes may change while they wait', () => {
  const { socket, buffer, flush } = opened(0);
  const bytes = Buffer.from('mine');
  buffer.write(bytes, 0, 2, true);
  buffer.write(bytes, 2, 4, true);
  bytes.fill('x');
  expect([flush(Infinity), socket.taken]).toEqual([true, 'mine']);
});

test('nothing at all behind bytes that wait is no reason to wait for more', () => {
  const { socket, buffer, write, flush } = opened(0);
  write('a');
  expect(write('')).toBe(false);
  expect([flush(1), buffer.idle, socket.taken]).toEqual([true, true, 'a']);
});

test('a closed socket swallows everything', () => {
  const { socket, buffer, write, flush } = opened(-1);
  expect([write('a'), buffer.idle]).toEqual([true, true]);
  socket.room = 0;
  write('b');
  expect([flush(-1), buffer.idle]).toEqual([true, true]);
  expect([flush(Infinity), socket.taken]).toEqual([true, '']);
});

test('the sending side closes once, behind the last byte', () => {
  const { socket, buffer, write, flush } = opened(0);
  write('last');
  buffer.finish();
  buffer.finish();
  flush(2);
  expect([socket.taken, socket.shutdowns]).toEqual(['la', 0]);
  flush(2);
  expect([socket.taken, socket.shutdowns]).toEqual(['last', 1]);
  buffer.finish();
  expect(socket.shutdowns).toBe(1);
});

test('the sending side closes at once where nothing waits, and not before it is asked to', () => {
  const { socket, buffer, flush } = opened(0);
  flush(1);
  expect(socket.shutdowns).toBe(0);
  buffer.finish();
  expect(socket.shutdowns).toBe(1);
});
