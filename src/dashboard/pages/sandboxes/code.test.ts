import { expect, test } from 'bun:test';
import { bodyOf, codeOf, parsePairs } from './code.ts';

const plain = { template: 'base', timeoutSeconds: 300, metadata: {}, env: {}, internet: true, pauseAtEnd: false };

test('code says what is asked for and no more', () => {
  expect(bodyOf(plain)).toEqual({ templateID: 'base', timeout: 300, secure: true });
  const all = codeOf(
    { ...plain, metadata: { a: "it's" }, env: { B: '1' }, internet: false, pauseAtEnd: true },
    'http://h',
  );
  expect(all['JavaScript']).toContain('envs: {"B":"1"}');
  expect(all['Python']).toContain('allow_internet_access=False');
  // A quote must not end the shell's string.
  expect(all['curl']).toContain(String.raw`it'\''s`);
});

test('pairs are lines of name=value', () => {
  expect(parsePairs('a=1\n\nb = x=y')).toEqual({ a: '1', b: ' x=y' });
  expect(parsePairs('')).toEqual({});
  expect(parsePairs('nothing')).toBeNull();
});
