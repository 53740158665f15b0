import { expect, test } from 'bun:test';
import { expandText, expandWord, expandWords } from './expand.ts';

const lookUp = (name: string) => ({ A: 'a', EMPTY: '', SPACE: 'x y' })[name];

/**
 * Processor time of this process, milliseconds: unlike the time of day, it does not grow while other processes compute.
 */
const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

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

test.each([
  ['${NONE:-${A}b}', 'ab'],
  ['${NONE:-"}"}', '}'],
  ['${NONE:-${NONE2:-${A}}}', 'a'],
  ['${A:?needed}${A?}', 'aa'],
  ['${}', '${}'],
  ['$constructor$__proto__', ''],
])('%p becomes %p', (word, expected) => {
  expect(expandWord(word, name => (name === 'A' ? 'a' : undefined))).toBe(expected);
});

const many = 'x'.repeat(60_000);

test.each([
  ['not closed', '${A:-'],
  ['not closed, thousands of times', '${A:-'.repeat(12_000)],
  ['nested', `${'${A:-'.repeat(20)}x${'}'.repeat(20)}`],
  ['too long', 'x'.repeat(65_537)],
  ['of what becomes too long', '$A$A'],
])('a word that is %s is refused', (_, word) => {
  expect(() => expandWord(word, () => many)).toThrow(/not closed|nested more|longer than/);
});

test.each([
  ['${NONE:?say $A}', 'NONE: say a'],
  ['${EMPTY:?}', 'EMPTY: it must be set'],
  ['${NONE?}', 'NONE: it must be set'],
  ['${A#x}', '${A#x… is no form'],
  ['${A%%x}', '${A%%… is no form'],
  ['${A/x/y}', '${A/x… is no form'],
  ['${A', '${A… is no form'],
])('%p is refused: %s', (word, message) => {
  expect(() => expandWord(word, lookUp)).toThrow(message);
  expect(() => expandText(word, lookUp)).toThrow(message);
});

test.each([
  ['dollars', '$'.repeat(65_000)],
  ['backslashes', '\\'.repeat(65_000)],
  ['names', `$${'A'.repeat(65_000)}`],
  ['braced names', '${AAAAAAAA:+}'.repeat(5_000)],
])('thousands of %s are read in one go', (_, word) => {
  const startedMs = cpuMs();
  expandWord(word, () => undefined);
  expandText(word.repeat(8), () => undefined);
  // With quadratic time, each would take several seconds.
  expect(cpuMs() - startedMs).toBeLessThan(2_000);
});

test('the words of one instruction stand for a mebibyte together at most', () => {
  const long = (name: string) => (name === 'LONG' ? 'x'.repeat(1 << 16) : undefined);
  expect(expandWords(['a', '$LONG', "'$LONG'"], long).map(word => word.length)).toEqual([1, 1 << 16, 5]);
  expect(
    expandWords(
      Array.from({ length: 16 }, () => '$LONG'),
      long,
    ),
  ).toHaveLength(16);
  const tooLong = 'what variables stand for is longer than 1048576 characters';
  expect(() => expandWords([...Array.from({ length: 16 }, () => '$LONG'), 'a'], long)).toThrow(tooLong);
});
