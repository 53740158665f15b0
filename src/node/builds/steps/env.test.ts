import { expect, test } from 'bun:test';
import { applyEnv } from './env.ts';

const known = { PATH: '/usr/bin', HOME: '/home/user' };

test('variables are replaced, by values of the same step too; all else is taken as it is', () => {
  expect(
    applyEnv(
      { A: '1' },
      ['B', '$A-${A}', 'C', '$B$NONE', 'P', '/x:$PATH', 'Q', '"q\' \\ `id` $(id) $1 ${A:-x}'],
      known,
    ),
  ).toEqual({ A: '1', B: '1-1', C: '1-1', P: '/x:/usr/bin', Q: '"q\' \\ `id` $(id) $1 ${A:-x}' });
});

test.each([[[]], [['A']], [['A', 'b', 'C']], [['A=B', 'c']], [['', 'c']]])('%p is refused', args => {
  expect(() => applyEnv({}, args, known)).toThrow();
});
