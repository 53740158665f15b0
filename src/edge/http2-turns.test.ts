import { expect, test } from 'bun:test';
import { Http2Input, Http2Turns } from './http2-turns.ts';

const nextTurn = () => new Promise(resolve => setImmediate(resolve));

test('who has much to do is done with a part of it in each turn of the loop, and one after the other', async () => {
  let nowMs = 0;
  const turns = new Http2Turns(() => nowMs);
  const done: string[] = [];
  const work = (name: string, parts: number) => () => {
    done.push(name);
    nowMs += 2;
    return --parts > 0;
  };
  turns.begin(work('a', 5));
  turns.begin(work('b', 2));
  // The first is in progress: nobody else begins before its turn is over.
  expect(done.splice(0)).toEqual(['a']);
  await nextTurn();
  expect(done.splice(0)).toEqual(['a', 'b', 'a']);
  await nextTurn();
  expect(done.splice(0)).toEqual(['b', 'a', 'a']);
  turns.begin(work('c', 1));
  turns.begin(work('d', 1));
  expect(done.splice(0)).toEqual([]);
  await nextTurn();
  expect(done.splice(0)).toEqual(['c', 'd']);
  await nextTurn();
  turns.begin(work('e', 1));
  expect(done).toEqual(['e']);
});

function input({ isFull = false } = {}) {
  const it = { isFull, given: [] as (number | null)[], isPaused: false };
  const taken = new Http2Input(new Http2Turns(() => 0), {
    give(bytes) {
      it.given.push(bytes && bytes.length);
      return !it.isFull;
    },
    pause: () => void (it.isPaused = true),
    resume: () => void (it.isPaused = false),
  });
  return { it, taken };
}

test('bytes go on in pieces, and nothing is read while some wait', async () => {
  const { it, taken } = input();
  taken.take(Buffer.alloc(100));
  expect([it.given, it.isPaused]).toEqual([[100], false]);
  taken.take(Buffer.alloc(40_000));
  taken.take(Buffer.alloc(10));
  expect([it.given, it.isPaused]).toEqual([[100, 16_384], true]);
  taken.end();
  await nextTurn();
  expect([it.given, it.isPaused]).toEqual([[100, 16_384, 16_384, 7232, 10, null], true]);
  taken.take(Buffer.alloc(5));
  taken.wanted();
  expect(it.given).toHaveLength(6);
});

test('a full runtime gets no more input until it asks, and none once it is dropped', async () => {
  const { it, taken } = input({ isFull: true });
  taken.take(Buffer.alloc(20_000));
  taken.take(Buffer.alloc(20_000));
  await nextTurn();
  expect([it.given, it.isPaused]).toEqual([[16_384], true]);
  taken.wanted();
  expect([it.given, it.isPaused]).toEqual([[16_384, 3616], true]);
  it.isFull = false;
  taken.wanted();
  expect(it.given).toEqual([16_384, 3616, 16_384]);
  taken.drop();
  await nextTurn();
  taken.end();
  expect([it.given, it.isPaused]).toEqual([[16_384, 3616, 16_384], true]);
});

test('who wants more with nothing waiting has it read', () => {
  const { it, taken } = input({ isFull: true });
  taken.take(Buffer.alloc(10));
  expect(it.isPaused).toBe(true);
  taken.wanted();
  expect(it.isPaused).toBe(false);
});
