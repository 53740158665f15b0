import { expect, test } from 'bun:test';
import { Replay, replayBytesMax } from './replay.ts';

const textOf = (replay: Replay) => Buffer.concat(replay.pieces()).toString();

test('all of a short output is kept, however it came', () => {
  const replay = new Replay();
  expect(textOf(replay)).toBe('');
  for (const part of ['a', '', 'bc\n', 'd'.repeat(40_000)]) replay.add(Buffer.from(part));
  expect(textOf(replay)).toBe(`abc\n${'d'.repeat(40_000)}`);
});

test('of a long one the end is kept, from the beginning of a line on', () => {
  const replay = new Replay();
  const lines = Array.from({ length: 60_000 }, (_, number) => `\x1b[31m${number}\x1b[0m`);
  for (const line of lines) replay.add(Buffer.from(`${line}\n`));
  const kept = textOf(replay).split('\n');
  expect(kept).toEqual([...lines.slice(-kept.length + 1), '']);
  expect(textOf(replay).length).toBeGreaterThan(replayBytesMax - 100);
  expect(textOf(replay).length).toBeLessThan(replayBytesMax * 1.1);
});
