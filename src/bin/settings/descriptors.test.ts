import { expect, test } from 'bun:test';
import { openFilesMax } from './descriptors.ts';

test('a process has as many descriptors as the system gives it', () => {
  const most = openFilesMax();
  expect(most).toBeGreaterThanOrEqual(1024);
  expect(openFilesMax()).toBe(most);
});
