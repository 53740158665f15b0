import { expect, test } from 'bun:test';
import { isTarFine } from './run-program.ts';

test('a tar of what changed meanwhile is one, and one that failed is none', () => {
  expect(isTarFine(1, 'tar: src/log: file changed as we read it\n')).toBe(true);
  expect(isTarFine(1, 'tar: src/tmp: File removed before we read it\n')).toBe(true);
  expect(isTarFine(1, 'tar: src: Permission denied\n')).toBe(false);
  expect(isTarFine(2, 'tar: src/log: file changed as we read it\n')).toBe(false);
});
