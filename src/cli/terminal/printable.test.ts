import { expect, test } from 'bun:test';
import { printable } from './printable.ts';

test('what a terminal takes for commands is shown, and text is left as it is', () => {
  expect(printable('\x1b]0;title\x07\x1b[2J\r\x9b31m\u202e')).toBe(
    '\\u001b]0;title\\u0007\\u001b[2J\\u000d\\u009b31m\\u202e',
  );
  expect(printable('two\nlines\t日本 é 😀')).toBe('two\nlines\t日本 é 😀');
});
