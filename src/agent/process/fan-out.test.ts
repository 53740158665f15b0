import { afterEach, beforeEach, expect, jest, mock, spyOn, test } from 'bun:test';
import { Outbox } from '../connect/outbox.ts';
import { FanOut } from './fan-out.ts';

// How fast a program may write when its output goes to several clients and some of them do not read.

let nowMs = 0;
beforeEach(() => {
  nowMs = 0;
  spyOn(performance, 'now').mockImplementation(() => nowMs);
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
  mock.restore();
});

/** Lets time pass, and everything that waited for it continue. */
async function pass(ms: number) {
  nowMs += ms;
  jest.advanceTimersByTime(ms);
  await settled();
}
const settled = async () => {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
};

const half = new Uint8Array(256 << 10);
const roomOf = (fanOut: FanOut) => {
  const waits = { isOver: false };
  const room = fanOut.room();
  if (room === undefined) return null;
  void room.then(() => (waits.isOver = true));
  return waits;
};

/** A client that takes what waits for it when the test says so. */
function client(fanOut: FanOut) {
  const outbox = new Outbox();
  fanOut.attach(outbox);
  const reader = outbox.stream().getReader();
  return {
    outbox,
    leave: () => reader.cancel(),
    /** Takes everything that waits; answers how much that was, and the text at its end. */
    async take() {
      const { value = new Uint8Array(0) } = await reader.read();
      await settled();
      return { bytes: value.length, end: Buffer.from(value).subarray(-200).toString('latin1') };
    },
  };
}

test('a program that nobody listens to never waits', () => {
  const fanOut = new FanOut();
  for (let times = 0; times < 9; times++) fanOut.add(half);
  expect([fanOut.isEmpty, fanOut.room()]).toEqual([true, undefined]);
});

test('where nobody keeps up the program waits, however long, and nobody is ended', async () => {
  const fanOut = new FanOut();
  const [one, other] = [client(fanOut), client(fanOut)];
  fanOut.add(half);
  expect(fanOut.room()).toBeUndefined();
  fanOut.add(half);
  const waits = roomOf(fanOut);
  await pass(60_000);
  expect([waits?.isOver, one.outbox.isOpen, other.outbox.isOpen]).toEqual([false, true, true]);
  expect((await one.take()).bytes).toBe(2 * half.length);
  // Now one client keeps up, and the other one's credit begins to be used.
  await pass(900);
  expect([waits?.isOver, other.outbox.isOpen]).toEqual([false, true]);
  expect((await other.take()).bytes).toBe(2 * half.length);
  expect([waits?.isOver, fanOut.room()]).toEqual([true, undefined]);
});

test('a client that keeps up waits for one that does not until its credit is used up', async () => {
  const fanOut = new FanOut();
  const [quick, slow] = [client(fanOut), client(fanOut)];
  fanOut.add(half);
  fanOut.add(half);
  await quick.take();
  const waits = roomOf(fanOut);
  await pass(999);
  expect([waits?.isOver, slow.outbox.isOpen]).toEqual([false, true]);
  await pass(1);
  expect([waits?.isOver, slow.outbox.isOpen, quick.outbox.isOpen]).toEqual([true, false, true]);
  const { bytes, end } = await slow.take();
  expect(bytes).toBeGreaterThan(2 * half.length);
  expect(end).toContain('"code":"resource_exhausted"');
  fanOut.add(half);
  expect([slow.outbox.bytes, quick.outbox.bytes, fanOut.isEmpty]).toEqual([0, half.length, false]);
});

test('who reads at last is not ended, and what others read ends nobody whose credit lasts', async () => {
  const fanOut = new FanOut();
  const [quick, late, slow] = [client(fanOut), client(fanOut), client(fanOut)];
  fanOut.add(half);
  fanOut.add(half);
  await quick.take();
  const waits = roomOf(fanOut);
  await pass(600);
  await late.take();
  expect([waits?.isOver, slow.outbox.isOpen]).toEqual([false, true]);
  // Exactly when its credit is used up, 60 ms of which have come back.
  nowMs += 460;
  await slow.take();
  expect([waits?.isOver, slow.outbox.isOpen]).toEqual([true, true]);
});

test('credit that was used comes back slowly, and no more of it than there was', async () => {
  const fanOut = new FanOut();
  const [quick, slow] = [client(fanOut), client(fanOut)];
  /** Fills both; answers whether the slow one is still there after reading nothing for this long. */
  const stall = async (ms: number) => {
    fanOut.add(half);
    fanOut.add(half);
    await quick.take();
    const waits = roomOf(fanOut);
    await pass(ms);
    if (!slow.outbox.isOpen) return false;
    await slow.take();
    expect(waits?.isOver).toBeTrue();
    return true;
  };
  // However long the time before, it brings no more than a second.
  await pass(3_600_000);
  expect(await stall(900)).toBeTrue();
  // 100 ms are left, and 400 come back.
  await pass(4_000);
  expect(await stall(450)).toBeTrue();
  expect(await stall(450)).toBeFalse();
});

test('a client that goes is waited for no more', async () => {
  const fanOut = new FanOut();
  const [quick, slow] = [client(fanOut), client(fanOut)];
  fanOut.add(half);
  fanOut.add(half);
  await quick.take();
  const waits = roomOf(fanOut);
  await slow.leave();
  await settled();
  expect([waits?.isOver, fanOut.isEmpty]).toEqual([true, false]);
  const last = client(fanOut);
  fanOut.detach(last.outbox);
  fanOut.add(half);
  expect(last.outbox.bytes).toBe(0);
});

test('one that has gone before it was attached is not attached', () => {
  const fanOut = new FanOut();
  const outbox = new Outbox();
  outbox.abandon();
  fanOut.attach(outbox);
  expect(fanOut.isEmpty).toBeTrue();
});

test('at the end all get the last message, whatever waits for them, and the program does not wait', async () => {
  const fanOut = new FanOut();
  const [one, full] = [client(fanOut), client(fanOut)];
  fanOut.add(half);
  fanOut.add(half);
  await one.take();
  const waits = roomOf(fanOut);
  fanOut.end(Buffer.from('last message') as Uint8Array<ArrayBuffer>);
  await settled();
  expect([waits?.isOver, fanOut.isEmpty]).toEqual([true, true]);
  for (const { take, outbox } of [one, full]) {
    expect((await take()).end).toContain('last message');
    expect(outbox.isOpen).toBeFalse();
  }
});
