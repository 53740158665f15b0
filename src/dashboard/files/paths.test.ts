import { expect, test } from 'bun:test';
import { joinPath, nameOf, stepsOf } from './paths.ts';

test('paths are joined and taken apart', () => {
  expect([joinPath('/', 'a'), joinPath('/a', 'b'), nameOf('/a/b.txt')]).toEqual(['/a', '/a/b', 'b.txt']);
  expect(stepsOf('/home/user').map(({ path }) => path)).toEqual(['/', '/home', '/home/user']);
  expect(stepsOf('/')).toHaveLength(1);
});
