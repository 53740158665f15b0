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

test('what is set again counts once, and values of values are bounded', () => {
  const again = Array.from({ length: 1000 }, (_, index) => ['A', `${index}`.padEnd(1000)]).flat();
  expect(applyEnv({}, again, known)['A']).toStartWith('999 ');
  const doubled = Array.from({ length: 40 }, (_, index) => [`V${index + 1}`, `$V${index}$V${index}`]).flat();
  expect(() => applyEnv({ V0: 'x' }, doubled, known)).toThrow('larger than 131072');
  const many = Array.from({ length: 900 }, (_, index) => [`V${index}`, 'x'.repeat(200)]).flat();
  expect(() => applyEnv({}, many, known)).toThrow('the environment is larger than 131072 characters');
});
