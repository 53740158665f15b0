import { expect, test } from 'bun:test';
import { createOutputBudget } from '../journal/budget.ts';
import { OutputLines } from './output-lines.ts';

function collect(now: () => number = () => 0) {
  const reported: string[] = [];
  const lines = new OutputLines('stdout', createOutputBudget(now), {
    line: text => void reported.push(text),
    dropped: bytes => void reported.push(`dropped ${bytes}`),
  });
  return { reported, lines, write: (text: string) => lines.take(Buffer.from(text)) };
}

test('lines are put together however they come, and the last needs no end', () => {
  const { reported, lines, write } = collect();
  write('one\ntw');
  write('o\r\n\nthree');
  lines.end();
  expect(reported).toEqual(['one', 'two', 'three']);
});

test('a long line is cut, with its length reported', () => {
  const { reported, write } = collect();
  write('x'.repeat(3000));
  write('y\n');
  expect(reported).toEqual([`${'x'.repeat(1024)}… (1977 bytes more)`]);
});

test('too much is dropped and counted, until the budget is there again', () => {
  let atMs = 0;
  const { reported, lines, write } = collect(() => atMs);
  write('a\n'.repeat(600));
  expect(reported.length).toBe(500);
  write('a\n'.repeat(10));
  atMs = 1000;
  write('later\n');
  lines.end();
  expect(reported.slice(500)).toEqual(['dropped 220', 'later']);
});
