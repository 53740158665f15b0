import { expect, test } from 'bun:test';
import { descriptorsOfEdge, openFilesMax } from './descriptors.ts';

test('a process has as many descriptors as the system gives it, and the edge leaves half of them', () => {
  const most = openFilesMax();
  expect(most).toBeGreaterThanOrEqual(1024);
  expect(openFilesMax()).toBe(most);
  expect(descriptorsOfEdge(20_000)).toBe(10_000);
});
