import { expect, test } from 'bun:test';
import { expandText, expandWord } from './expand.ts';

const lookUp = (name: string) => ({ A: 'a', EMPTY: '', SPACE: 'x y' })[name];

test.each([
  ['$A${A}b', 'aab'],
  ['"$SPACE"', 'x y'],
  ["'$A'", '$A'],
  ['\\$A', '$A'],
  ['"\\$A \\n"', '$A \\n'],
  ['a\\ b', 'a b'],
  ['${NONE:-d}', 'd'],
  ['${EMPTY:-d}', 'd'],
  ['${EMPTY-d}', ''],
  ['${A:+set}', 'set'],
  ['${NONE:+set}', ''],
  ['${NONE:-$A}', 'a'],
  ['$NONE', ''],
  ['$', '$'],
  ['5$', '5$'],
  ['"it\'s"', "it's"],
])('%p becomes %p', (word, expected) => {
  expect(expandWord(word, lookUp)).toBe(expected);
});

test('in text, quotes stay', () => {
  expect(expandText('"$A" \'$A\' \\$A ${NONE:-x}', lookUp)).toBe('"a" \'a\' $A x');
});
