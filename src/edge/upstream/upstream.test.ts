import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { silentLog } from '../../base/telemetry/log.ts';
import { closeWhenSent } from './close-when-sent.ts';
import { Upstream, upstreamHandlers } from './upstream.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const handlers = upstreamHandlers(silentLog);

/** A connection, what was done with its socket, and what its user and its home heard. */
function connected({ isOpen = true, reset }: { isOpen?: boolean; reset?: boolean } = {}) {
  const [done, heard]: [string[], string[]] = [[], []];
  const act = (name: string) => () => void done.push(name);
  const home = { add() {}, give() {}, forget: () => void heard.push('forgotten') };
  const farEnd = reset === undefined ? undefined : { wasReset: () => reset, reset: act('reset far end') };
  const upstream = new Upstream(home, { farEnd });
  const socket = {
    ...{ data: upstream, remoteAddress: '', bytesWritten: 0, room: Number.POSITIVE_INFINITY },
    write(_: Uint8Array, start = 0, length = _.length - start) {
      const taken = Math.min(length, socket.room);
      socket.room -= taken;
      return taken;
    },
    ...{ pause: act('pause'), resume: act('resume'), shutdown: act('shutdown'), close: act('close') },
    terminate: act('terminate'),
  };
  const bun = socket as unknown as Bun.Socket<Upstream>;
  if (isOpen) handlers.open(bun);
  const user = {
    upstreamData: (bytes: Buffer) => void heard.push(`data ${bytes.toString()}`),
    upstreamDrained: () => void heard.push('drained'),
    upstreamEnded: () => void heard.push('ended'),
    upstreamClosed: (error: Error | undefined) => void heard.push(`closed ${error?.message ?? 'in order'}`),
    cut() {},
  };
  return { upstream, socket, bun, user, done, heard };
}

test('what happens on a connection is heard by who uses it', () => {
  const { upstream, socket, bun, user, done, heard } = connected();
  upstream.user = user;
  handlers.data(bun, Buffer.from('a'));
  handlers.end(bun);
  expect([heard, upstream.ended]).toEqual([['data a', 'ended'], true]);
  socket.room = 1;
  upstream.sendBuffer.write(Buffer.from('abc'), 0, 3, false);
  socket.room = 1;
  handlers.drain(bun);
  socket.room = 1;
  handlers.drain(bun);
  handlers.drain(bun);
  expect(heard.slice(2)).toEqual(['drained']);
  handlers.close(bun, undefined);
  expect(heard.slice(3)).toEqual(['forgotten', 'closed in order']);
  expect([upstream.closed, upstream.user as unknown]).toEqual([true, null]);
  expect(done).toEqual([]);
});

test('a server that speaks to nobody is not trusted with the next request', () => {
  const { upstream, bun, done } = connected();
  handlers.data(bun, Buffer.from('HTTP/1.1 200 OK'));
  expect([done, upstream.greetedInHttp2]).toEqual([['terminate'], false]);
  const other = connected();
  handlers.data(other.bun, Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
  expect([other.done, other.upstream.greetedInHttp2]).toEqual([['terminate'], true]);
  handlers.data(other.bun, Buffer.from('more'));
  expect(other.upstream.greetedInHttp2).toBe(true);
});

test('what a server says that may speak first waits for who listens', () => {
  const { upstream, bun, done, heard } = connected();
  upstream.early = [];
  upstream.onEarly = () => void heard.push('early');
  handlers.data(bun, Buffer.from('a'));
  upstream.onEarly = null;
  handlers.data(bun, Buffer.from('b'));
  expect([Buffer.concat(upstream.early).toString(), heard, done]).toEqual(['ab', ['early'], ['pause']]);
  handlers.end(bun);
  expect([upstream.ended, done]).toEqual([true, ['pause']]);
});

test('a server that ends while nobody uses the connection is left', () => {
  const { bun, done } = connected();
  handlers.end(bun);
  expect(done).toEqual(['close']);
});

test('an end that is a break of another machine’s connection is one here', () => {
  const { upstream, bun, user, done, heard } = connected({ reset: true });
  upstream.user = user;
  handlers.end(bun);
  expect([heard, done, upstream.ended]).toEqual([[], ['reset far end', 'terminate'], false]);
  handlers.close(bun, undefined);
  expect(heard).toEqual(['forgotten', 'closed the connection was reset']);
  const failed = connected({ reset: true });
  failed.upstream.user = failed.user;
  handlers.close(failed.bun, new Error('timed out'));
  expect(failed.heard).toEqual(['forgotten', 'closed timed out']);
  const whole = connected({ reset: false });
  whole.upstream.user = whole.user;
  handlers.end(whole.bun);
  handlers.close(whole.bun, undefined);
  expect(whole.heard).toEqual(['ended', 'forgotten', 'closed in order']);
});

test('a socket is paused and resumed once, and not when it is gone', () => {
  const { upstream, bun, done } = connected();
  upstream.resume();
  upstream.pause();
  upstream.pause();
  upstream.resume();
  upstream.resume();
  expect(done).toEqual(['pause', 'resume']);
  upstream.pause();
  handlers.close(bun, undefined);
  upstream.resume();
  upstream.close();
  upstream.terminate();
  expect(done).toEqual(['pause', 'resume', 'pause']);
});

test('a connection that nobody is going to use is reset when it opens, or at once', () => {
  const { upstream, bun, done } = connected({ isOpen: false });
  upstream.abandon();
  expect(done).toEqual([]);
  handlers.open(bun);
  expect(done).toEqual(['terminate']);
  const open = connected();
  open.upstream.abandon();
  expect(open.done).toEqual(['terminate']);
});

test('a connection is not used before it is open', () => {
  const { upstream } = connected({ isOpen: false });
  expect(() => upstream.socket).toThrow('before it is open');
  expect(() => upstream.sendBuffer).toThrow('before it is open');
});

test('an error in a handler breaks the connection off', () => {
  const { bun, done } = connected();
  handlers.error(bun, new Error('ours'));
  expect(done).toEqual(['terminate']);
});

test('a connection whose bytes are sent is closed at once, and one that is gone left alone', () => {
  const { upstream, done } = connected();
  closeWhenSent(upstream, 50);
  expect(done).toEqual(['close']);
  const gone = connected();
  gone.socket.room = 0;
  gone.upstream.sendBuffer.write(Buffer.from('a'), 0, 1, false);
  handlers.close(gone.bun, undefined);
  closeWhenSent(gone.upstream, 50);
  jest.advanceTimersByTime(50);
  expect([gone.done, gone.upstream.user]).toEqual([[], null]);
});

/** A connection that is closing, with bytes that its server has no room for. */
function closing() {
  const at = connected();
  at.upstream.pause();
  at.socket.room = 0;
  at.upstream.sendBuffer.write(Buffer.from('ab'), 0, 2, false);
  closeWhenSent(at.upstream, 50);
  expect(at.done.splice(0)).toEqual(['pause', 'resume']);
  return at;
}

test('a server may take what waits for it, and speak and end meanwhile', () => {
  const { socket, bun, done } = closing();
  handlers.data(bun, Buffer.from('x'));
  handlers.end(bun);
  jest.advanceTimersByTime(49);
  expect(done).toEqual([]);
  socket.room = 9;
  handlers.drain(bun);
  handlers.close(bun, undefined);
  jest.advanceTimersByTime(50);
  expect(done).toEqual(['close']);
});

test('a server that does not take it in time is reset, and so is one of a sandbox that is cut', () => {
  const late = closing();
  jest.advanceTimersByTime(50);
  expect(late.done).toEqual(['terminate']);
  const cut = closing();
  cut.upstream.user?.cut();
  expect(cut.done).toEqual(['terminate']);
});
