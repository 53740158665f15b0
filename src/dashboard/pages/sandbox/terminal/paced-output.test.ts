import { expect, test } from 'bun:test';
import { nextBudget, pacedOutput } from './paced-output.ts';

/** Frames that come when told, each so many ms after the one before. */
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
  const read = output(new Uint8Array(1_000_000)).then(() => (isRead = true));
  while (!isRead && perFrame.length < 500) {
    perFrame.push(0);
    await next(16);
  }
  await read;
  expect(perFrame.length).toBeGreaterThan(5);
  while (perFrame.reduce((sum, bytes) => sum + bytes) < 1_000_000 && perFrame.length < 500) {
    perFrame.push(0);
    await next(16);
  }
  expect(perFrame.reduce((sum, bytes) => sum + bytes)).toBe(1_000_000);
  expect(Math.max(...perFrame)).toBeLessThanOrEqual(512 * 1024);
});

test('late frames make the pieces smaller, frames in time larger, within bounds', () => {
  expect(nextBudget(100_000, 33)).toBe(70_000);
  expect(nextBudget(100_000, 16.7)).toBe(108_000);
  expect(nextBudget(2048, 33)).toBe(2048);
  expect(nextBudget(256 * 1024, 16.7)).toBe(256 * 1024);
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
