import { expect, test } from 'bun:test';
import { UnreadWatch } from './unread-watch.ts';

const limits = { unreadTimeoutMs: 100, streamIdleTimeoutMs: 1000 };

test('a response may wait for as long as its connection carries something, up to an end', () => {
  const socket = { bytesCarried: 5 };
  const watch = new UnreadWatch(socket, limits);
  expect(watch.begin(0)).toBe(100);
  socket.bytesCarried = 6;
  expect(watch.look(100)).toBe(200);
  socket.bytesCarried = 7;
  // Closing it does not restart the time.
  expect(watch.begin(950)).toBe(1000);
  socket.bytesCarried = 8;
  expect(watch.look(1000)).toBeUndefined();
});

test('a response that waits while nothing is carried is given up', () => {
  const watch = new UnreadWatch({ bytesCarried: 5 }, limits);
  watch.begin(0);
  expect(watch.look(100)).toBeUndefined();
});
