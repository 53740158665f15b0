import { expect, test } from 'bun:test';
import { Share } from '../../base/concurrency/share.ts';
import { limitsWithin } from '../limits.ts';
import { UpstreamPool, poolBounds } from './pool.ts';
import type { Upstream } from './upstream.ts';

const bounds = { idleMax: 3, idleTimeoutMs: 1000, keptMax: 1, surplusTimeoutMs: 100 };

/**
 * A pool, and connections that it knows. `kept`: how much the idle ones use of the share that all pools have together.
 */
function poolOf({ max = 9, ...more }: Partial<typeof bounds> & { max?: number } = {}) {
  const kept = new Share('everybody', max, null);
  const pool = new UpstreamPool({ ...bounds, ...more, idleShare: kept });
  const ended: string[] = [];
  const open = (name: string): Upstream => {
    const upstream = {
      ...{ name, ended: false, served: 0, idleSinceMs: 0, keepMs: Number.POSITIVE_INFINITY },
      user: { cut: () => void ended.push(`cut ${name}`) },
      close: () => {
        ended.push(name);
        pool.forget(upstream);
      },
      terminate: () => {
        ended.push(`terminate ${name}`);
        pool.forget(upstream);
      },
    } as unknown as Upstream;
    pool.add(upstream);
    return upstream;
  };
  /** A connection that has been idle since `nowMs`. */
  const idle = (name: string, nowMs = 0): Upstream => {
    const upstream = open(name);
    pool.give(upstream, nowMs);
    return upstream;
  };
  return { pool, kept, ended, open, idle };
}

test('the connection that was used last is taken first, and serves its next request', () => {
  const { pool, kept, idle, ended } = poolOf();
  const [first, second] = [idle('a', 10), idle('b', 20)];
  expect([second.served, second.idleSinceMs, second.user, kept.taken, pool.size]).toEqual([1, 20, null, 2, 2]);
  expect([pool.take(30, 1000), pool.take(30, 1000), pool.take(30, 1000)]).toEqual([second, first, undefined]);
  expect([kept.taken, pool.size, ended]).toEqual([0, 2, []]);
});

test('one that was idle for too long is left, by our time or by its server’s', () => {
  const { pool, idle } = poolOf();
  const upstream = idle('a', 10);
  expect(pool.take(61, 50)).toBeUndefined();
  expect(pool.take(60, 50)).toBe(upstream);
  pool.give(upstream, 100);
  upstream.keepMs = 20;
  expect(pool.take(121, 50)).toBeUndefined();
  expect(pool.take(120, 50)).toBe(upstream);
});

test('one whose server has closed its side is closed, and the next one taken', () => {
  const { pool, kept, idle, ended } = poolOf();
  const [good, bad] = [idle('good'), idle('bad')];
  bad.ended = true;
  expect(pool.take(0, 1000)).toBe(good);
  expect([ended, kept.taken, pool.size]).toEqual([['bad'], 0, 1]);
});

test('no more are kept than may be, of this pool’s and of all', () => {
  const own = poolOf();
  for (const name of ['a', 'b', 'c', 'd']) own.idle(name);
  expect([own.ended, own.kept.taken, own.pool.size]).toEqual([['d'], 3, 3]);
  const all = poolOf({ max: 1 });
  for (const name of ['a', 'b']) all.idle(name);
  expect([all.ended, all.kept.taken, all.pool.size]).toEqual([['b'], 1, 1]);
});

test('one that closes is forgotten, whether it was idle or not', () => {
  const { pool, kept, idle, open } = poolOf();
  const [waiting, used] = [idle('a'), open('b')];
  pool.forget(waiting);
  pool.forget(used);
  expect([pool.size, kept.taken, pool.take(0, 1000)]).toEqual([0, 0, undefined]);
});

test('idle ones end by time, those beyond the kept ones sooner', () => {
  const { pool, kept, idle, ended } = poolOf();
  for (const name of ['a', 'b', 'c']) idle(name);
  pool.closeIdle(99);
  expect(ended).toEqual([]);
  pool.closeIdle(100);
  expect(ended).toEqual(['a', 'b']);
  pool.closeIdle(999);
  expect(ended).toEqual(['a', 'b']);
  pool.closeIdle(1000);
  expect([ended, kept.taken, pool.size]).toEqual([['a', 'b', 'c'], 0, 0]);
});

test('a server’s own time ends an idle connection before ours does', () => {
  const { pool, idle, ended } = poolOf();
  idle('a').keepMs = 50;
  pool.closeIdle(49);
  expect(ended).toEqual([]);
  pool.closeIdle(50);
  expect(ended).toEqual(['a']);
});

test('a cut resets every connection, and tells who uses it before', () => {
  const { pool, kept, idle, open, ended } = poolOf();
  idle('a');
  open('b');
  pool.cut();
  expect([ended, kept.taken, pool.size]).toEqual([['terminate a', 'cut b', 'terminate b'], 0, 0]);
});

test('connections to our own servers are kept for longer than those to a sandbox’s', () => {
  const limits = limitsWithin(1000);
  const share = new Share('everybody', 9, null);
  const [own, other] = [poolBounds(limits, true, share), poolBounds(limits, false, share)];
  expect(own.idleTimeoutMs).toBe(limits.idleOwnUpstreamTimeoutMs);
  expect(other.idleTimeoutMs).toBe(limits.idleUpstreamTimeoutMs);
  expect(own.idleTimeoutMs).toBeGreaterThan(other.idleTimeoutMs);
});
