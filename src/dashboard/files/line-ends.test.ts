import { expect, test } from 'bun:test';
import { withEndsOf, withPlainEnds } from './line-ends.ts';

/** What is saved when somebody opens a text and edits what the field shows of it. */
const edited = (before: string, edit: (shown: string) => string) => withEndsOf(before, edit(withPlainEnds(before)));

test('ends of lines stay what they were, whatever a field makes of them', () => {
  for (const text of ['', 'a', '\r\n', 'a\r\nb\r\n', 'a\nb', 'a\rb\r\n\nc', '\r\r\n\n'])
    expect(edited(text, shown => shown)).toBe(text);
});

test('lines that come end as most do, and those that nobody touched as they did', () => {
  expect(edited('a\r\nb\r\n', shown => `${shown}c\n`)).toBe('a\r\nb\r\nc\r\n');
  expect(edited('a\r\nb\nc\r\nd\r\n', shown => shown.replace('c', 'new\nC'))).toBe('a\r\nb\nnew\r\nC\r\nd\r\n');
  expect(edited('a\r\nb\nc\r\n', shown => shown.replace('b', 'B'))).toBe('a\r\nB\nc\r\n');
  expect(edited('a\r\nb\nc', shown => shown.replace('a\n', ''))).toBe('b\nc');
  expect(edited('one', () => 'one\ntwo')).toBe('one\ntwo');
});

test('most lines decide how new ones end, wherever these are', () => {
  expect(edited('a\nb\r\nc\r\n', shown => `new\n${shown}`)).toBe('new\r\na\nb\r\nc\r\n');
  expect(edited('a\r\nb\nc\n', shown => `${shown}new\n`)).toBe('a\r\nb\nc\nnew\n');
});

test('lines that are the same stay as they were above and below a change, however many there are', () => {
  expect(edited('x\r\nx\nx\nx', shown => `${shown}\nx`)).toBe('x\r\nx\nx\nx\nx');
  expect(edited('a\r\nb\nc\nd\r\ne', shown => shown.replace('c\n', ''))).toBe('a\r\nb\nd\r\ne');
  expect(edited('a\nb\r\nc\nd\r\n', shown => shown.replace('b', 'b\nnew'))).toBe('a\nb\r\nnew\nc\nd\r\n');
  expect(edited('x\r\ny\r\nx\n', () => 'x\nx\n')).toBe('x\r\nx\n');
});
