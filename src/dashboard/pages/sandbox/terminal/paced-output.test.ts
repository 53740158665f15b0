import { expect, test } from 'bun:test';
import { bytesAt, nextRate, pacedOutput } from './paced-output.ts';

/** Frames that come on command, each a given number of ms after the one before. */
function frames() {
  let now = 0;
  let waiting: ((at: number) => void)[] = [];
  return {
    frame: () => new Promise<number>(resolve => waiting.push(resolve)),
    async next(afterMs: number) {
      now += afterMs;
      const told = waiting;
      waiting = [];
      for (const tell of told) tell(now);
      for (let turns = 0; turns < 200; turns++) await Promise.resolve();
    },
  };
}

test('little output is shown at once or with the next frame, in its order', async () => {
  const { frame, next } = frames();
  const shown: number[] = [];
  const output = pacedOutput({ show: async bytes => void shown.push(...bytes), frame });
  await output(Uint8Array.of(1, 2));
  expect(shown).toEqual([1, 2]);
  await output(Uint8Array.of(3));
  await next(16);
  expect(shown).toEqual([1, 2, 3]);
  await next(16);
  await output(Uint8Array.of(4));
  expect(shown).toEqual([1, 2, 3, 4]);
});

test('much output is divided among frames, is waited for, and is whole at the end', async () => {
  const { frame, next } = frames();
  const perFrame: number[] = [0];
  const show = async (bytes: Uint8Array) => void (perFrame[perFrame.length - 1]! += bytes.length);
  const output = pacedOutput({ show, frame });
  let isRead = false;
  const read = output(new Uint8Array(2_000_000)).then(() => (isRead = true));
  while (!isRead && perFrame.length < 500) {
    perFrame.push(0);
    await next(16);
  }
  await read;
  expect(perFrame.length).toBeGreaterThan(5);
  while (perFrame.reduce((sum, bytes) => sum + bytes) < 2_000_000 && perFrame.length < 500) {
    perFrame.push(0);
    await next(16);
  }
  expect(perFrame.reduce((sum, bytes) => sum + bytes)).toBe(2_000_000);
  expect(Math.max(...perFrame)).toBeLessThanOrEqual(512 * 1024);
});

test('a frame shows as much as was possible of late, within bounds; what took long for once changes little', () => {
  expect(nextRate(4_096, 32_768, 2)).toBe(16_384);
  expect(nextRate(16_384, 32_768, 1_000)).toBeCloseTo(16_056.3, 1);
  expect(nextRate(1_000, 32_768, 0)).toBe(32_768);
  expect([1, 4_096, 1e9].map(bytesAt)).toEqual([16_384, 24_576, 262_144]);
  let rate = 16_384;
  for (let frame = 0; frame < 500; frame++) rate = nextRate(rate, bytesAt(rate), 20);
  expect(bytesAt(rate)).toBe(16_384);
});

test('what came in many pieces and waits is shown as one', async () => {
  const { frame, next } = frames();
  const shown: number[][] = [];
  const output = pacedOutput({ show: async bytes => void shown.push([...bytes]), frame });
  for (let byte = 1; byte <= 5; byte++) await output(Uint8Array.of(byte));
  await next(16);
  expect(shown).toEqual([[1], [2, 3, 4, 5]]);
});

test('it is said when much waits, and when it is all shown', async () => {
  const { frame, next } = frames();
  const said: boolean[] = [];
  const output = pacedOutput({ show: async () => {}, frame, onMuch: isMuch => said.push(isMuch) });
  await output(new Uint8Array(1_000));
  await next(16);
  expect(said).toEqual([]);
  await output(new Uint8Array(100_000));
  expect(said).toEqual([true]);
  for (let turn = 0; turn < 20; turn++) await next(16);
  expect(said).toEqual([true, false]);
});

test('little output says nothing of how much could be shown: much of it comes in large pieces afterwards', async () => {
  const { frame, next } = frames();
  const shown: number[] = [];
  const output = pacedOutput({ show: async bytes => void shown.push(bytes.length), frame, now: () => 0 });
  for (let byte = 0; byte < 100; byte++) {
    await output(Uint8Array.of(byte));
    await next(16);
  }
  shown.length = 0;
  await output(new Uint8Array(200_000));
  expect(shown).toEqual([24_576]);
});
