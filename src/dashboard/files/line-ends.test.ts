import { expect, test } from 'bun:test';
import { withEndsOf, withPlainEnds } from './line-ends.ts';

/** What is kept where somebody opens a text, and does this to what the field shows of it. */
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
