import { expect, test } from 'bun:test';
import { openFilesMax, openFilesWanted } from './descriptors.ts';

test('a process has as many descriptors as the system gives it', () => {
  const most = openFilesMax(openFilesWanted.direct);
  expect(most).toBeGreaterThanOrEqual(1024);
  expect(openFilesMax(openFilesWanted.direct)).toBe(most);
});
