import { expect, test } from 'bun:test';
import { extension } from './extension.ts';

test('a quarter of an hour is added to the time that is left, or to now where none is', () => {
  const now = Date.parse('2026-01-01T12:00:00Z');
  expect(extension('2026-01-01T12:10:00.400Z', now)).toEqual({ timeout: 1500 });
  expect(extension('2026-01-01T11:00:00Z', now)).toEqual({ timeout: 900 });
});
