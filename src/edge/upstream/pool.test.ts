import { expect, test } from 'bun:test';
import { Share } from '../../base/concurrency/share.ts';
import { limitsWithin } from '../limits.ts';
import type { ByteSocket } from '../send-buffer.ts';
import { closeWhenSent } from './close-when-sent.ts';
import { poolBounds, UpstreamPool } from './pool.ts';
import { Upstream } from './upstream.ts';

/** A socket that remembers how it was ended, and takes only so much. */
function fakeSocket() {
  const state = { end: '', room: Number.POSITIVE_INFINITY };
  const socket: ByteSocket = {
    ...{ remoteAddress: '', bytesWritten: 0, pause() {}, resume() {}, shutdown() {} },
    write(bytes, start = 0, length = bytes.length - start) {
      const taken = Math.min(length, state.room);
      state.room -= taken;
      return taken;
    },
    close: () => void (state.end ||= 'close'),
    terminate: () => void (state.end ||= 'terminate'),
  };
  return { state, socket };
}

const bounds = { idleMax: 3, idleTimeoutMs: 1_000, keptMax: 1, surplusTimeoutMs: 100 };

/** A pool, and connections of it that were in use. */
function scene(changes: Partial<typeof bounds> = {}, idleShare = new Share('everybody', 100, null)) {
  const pool = new UpstreamPool({ ...bounds, idleShare, ...changes });
  const open = () => {
    const { state, socket } = fakeSocket();
    const upstream = new Upstream(pool);
    pool.add(upstream);
    upstream.opened(socket);
    return { upstream, state };
  };
  return { pool, idleShare, open };
}

test('the connection that was used last is taken first, and none that was idle for too long', () => {
  const { pool, idleShare, open } = scene();
  const [first, second] = [open().upstream, open().upstream];
  pool.give(first, 0);
  pool.give(second, 50);
  expect([pool.size, idleShare.taken, second.served]).toEqual([2, 2, 1]);
  expect(pool.take(151, 100)).toBeUndefined();
  expect(pool.take(150, 100)).toBe(second);
  expect([idleShare.taken, pool.size]).toEqual([1, 2]);
  expect(pool.take(150, 100)).toBeUndefined();
  expect(pool.take(150, 150)).toBe(first);
  expect(pool.take(150, 1_000)).toBeUndefined();
  expect(idleShare.taken).toBe(0);
});

test('one whose server keeps it for less is not taken after that', () => {
  const { pool, open } = scene();
  const { upstream, state } = open();
  upstream.keepMs = 20;
  pool.give(upstream, 0);
  expect(pool.take(21, 1_000)).toBeUndefined();
  pool.closeIdle(19);
  expect(state.end).toBe('');
  pool.closeIdle(20);
  expect(state.end).toBe('close');
});

test('one that its server has ended is closed, and the next one taken', () => {
  const { pool, idleShare, open } = scene();
  const [good, over] = [open(), open()];
  pool.give(good.upstream, 0);
  pool.give(over.upstream, 0);
  over.upstream.ended = true;
  expect(pool.take(0, 100)).toBe(good.upstream);
  expect([over.state.end, good.state.end, idleShare.taken]).toEqual(['close', '', 0]);
});

test('so many are kept, of this pool and of all together, and the others closed', () => {
  const own = scene();
  const kept = Array.from({ length: 4 }, own.open);
  for (const { upstream } of kept) own.pool.give(upstream, 0);
  expect(kept.map(({ state }) => state.end)).toEqual(['', '', '', 'close']);
  expect(own.idleShare.taken).toBe(3);
  const all = new Share('everybody', 2, null);
  const [one, other] = [scene({}, all), scene({}, all)];
  for (const { pool, open } of [one, other]) pool.give(open().upstream, 0);
  const last = other.open();
  other.pool.give(last.upstream, 0);
  expect([last.state.end, all.taken]).toEqual(['close', 2]);
});

test('a connection that is gone takes nothing of what is kept', () => {
  const { pool, idleShare, open } = scene();
  const [idle, used] = [open().upstream, open().upstream];
  pool.give(idle, 0);
  pool.forget(idle);
  pool.forget(used);
  expect([pool.size, idleShare.taken, pool.take(0, 100)]).toEqual([0, 0, undefined]);
});

test('beyond the few that are kept for long, the coldest end soon', () => {
  const { pool, open } = scene();
  const kept = Array.from({ length: 3 }, open);
  for (const [at, { upstream }] of kept.entries()) pool.give(upstream, at);
  const ends = () => kept.map(({ state }) => state.end);
  pool.closeIdle(99);
  expect(ends()).toEqual(['', '', '']);
  pool.closeIdle(101);
  expect(ends()).toEqual(['close', 'close', '']);
});

test('a cut resets all, and whoever uses them hears of it', () => {
  const { pool, open } = scene();
  const [idle, used] = [open(), open()];
  let cuts = 0;
  const nothing = { upstreamData() {}, upstreamDrained() {}, upstreamEnded() {}, upstreamClosed() {} };
  used.upstream.user = { ...nothing, cut: () => cuts++ };
  const { user } = used.upstream;
  idle.upstream.user = user;
  pool.give(idle.upstream, 0);
  pool.cut();
  expect([idle.state.end, used.state.end, cuts]).toEqual(['terminate', 'terminate', 1]);
});

test('our own servers keep connections for longer than what is in a sandbox', () => {
  const limits = limitsWithin(1_000_000);
  const share = new Share('everybody', 1, null);
  expect(poolBounds(limits, true, share)).toMatchObject({
    idleTimeoutMs: 120_000,
    keptMax: 16,
    surplusTimeoutMs: 4_000,
  });
  expect(poolBounds(limits, false, share)).toMatchObject({ idleTimeoutMs: 4_000, surplusTimeoutMs: 4_000 });
});

test('what waits for a server is sent before the connection is closed, but not for ever', async () => {
  for (const takes of [true, false]) {
    const { upstream, state } = scene().open();
    state.room = 2;
    upstream.sendBuffer.write(Buffer.from('four'), 0, 4, false);
    closeWhenSent(upstream, 20);
    expect(state.end).toBe('');
    if (takes) {
      state.room = 9;
      upstream.sendBuffer.flush();
      upstream.user?.upstreamDrained();
      upstream.user?.upstreamClosed(undefined);
    } else while (state.end === '') await Bun.sleep(1);
    expect(state.end).toBe(takes ? 'close' : 'terminate');
  }
  const { upstream, state } = scene().open();
  closeWhenSent(upstream, 20);
  expect(state.end).toBe('close');
});
