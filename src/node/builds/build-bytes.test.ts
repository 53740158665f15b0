import { expect, test } from 'bun:test';
import { createBuildBytes } from './build-bytes.ts';

test('a build and a team have their bytes, refused with the figures, and back when the time is over', () => {
  let now = 0;
  const bytes = createBuildBytes({ perBuild: 100 * 2 ** 20, perTeam: 150 * 2 ** 20, windowMs: 3_600_000 }, () => now);
  const first = bytes.begin('a');
  first.add(60 * 2 ** 20);
  expect(first.left()).toBe(40 * 2 ** 20);
  expect(() => first.add(50 * 2 ** 20)).toThrow('the build has made 110 MiB of layers, and a build may make 100 MiB');
  const second = bytes.begin('a');
  expect(second.left()).toBe(40 * 2 ** 20);
  expect(() => second.add(50 * 2 ** 20)).toThrow(
    'builds of the team have made 160 MiB of layers within 1 hours, and may make 150 MiB',
  );
  expect(() => second.require()).toThrow('builds of the team');
  bytes.begin('b').add(90 * 2 ** 20);
  now += 3_600_001;
  expect(bytes.begin('a').left()).toBe(100 * 2 ** 20);
});
