import { expect, test } from 'bun:test';
import { momentText, tableText } from './table.ts';

const rows = [
  ['ID', 'NAME', 'WHAT'],
  ['i0123456789012345678', 'short', 'a long text that says a great deal about nothing'],
];

test('columns are aligned, and the last has no blanks behind it', () => {
  expect(
    tableText([
      ['A', 'B'],
      ['long', 'x'],
    ]),
  ).toBe('A     B\nlong  x\n');
});

test('a table fits the terminal: long cells are cut, what other commands take is not', () => {
  const lines = tableText(rows, 60).trimEnd().split('\n');
  expect(lines.every(line => line.length <= 60)).toBe(true);
  expect(lines[1]).toMatch(/^i0123456789012345678  short  a long .*…$/);
  // Even at the narrowest, each column still shows something.
  expect(tableText(rows, 10)).toContain('i0123456789012345678  short  a long …');
  expect(tableText(rows)).toContain('about nothing\n');
});

test('a moment is told as it is, and to a person by how far away it is', () => {
  const at = new Date(Date.now() + 3_600_000).toISOString();
  const terminal = { out() {}, err() {}, isInteractive: false };
  expect(momentText(terminal, at)).toBe(at);
  expect(momentText({ ...terminal, columns: 80 }, at)).toMatch(/^in (1h|59m)/);
});

test('a name that others gave makes no row of its own, and tells the terminal nothing', () => {
  expect(tableText([['NAME'], ['a\nb\x1b[31m']])).toBe('NAME\na b\\u001b[31m\n');
});
