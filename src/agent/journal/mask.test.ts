import { expect, test } from 'bun:test';
import { createMask } from './mask.ts';

const mask = createMask([
  { OPENAI_API_KEY: 'hunter2hunter2', PLAIN: 'visible-value', DB_PASSWORD: 'x' },
  { MY_TOKEN: 'abc def ghi' },
]);

test.each([
  ['echo hunter2hunter2', 'echo ***'],
  ['say "abc def ghi" twice', 'say "***" twice'],
  ['export FOO_SECRET=abc123 && run', 'export FOO_SECRET=*** && run'],
  ['PASSWORD="with space" ./a', 'PASSWORD=*** ./a'],
  ['login --token abcdef --user me', 'login --token *** --user me'],
  ['curl -H "Authorization: Bearer abc.def" https://a.b', 'curl -H "Authorization: ***" https://a.b'],
  ["curl -H 'X-Api-Key: 123' https://a.b", "curl -H 'X-Api-Key: ***' https://a.b"],
  ['curl -u me:pass https://a.b', 'curl -u me:*** https://a.b'],
  ['git clone https://me:pass@host/x.git', 'git clone https://me:***@host/x.git'],
  ['{"access_token": "abc"}', '{"access_token": ***}'],
  ['key ghp_abcdefghijklmnopqrstuvwxyz', 'key ***'],
  ['AKIAIOSFODNN7EXAMPLE', '***'],
  ['sk-proj-abcdefghijklmnopqrstu', '***'],
])('%s', (text, expected) => {
  expect(mask(text)).toBe(expected);
});

test.each([
  'ls -la /home/user',
  'echo visible-value',
  'python -c "print(1)"',
  'https://host:8080/path',
  'npm test -- --grep x',
  'tokens are counted',
])('leaves %s as it is', text => {
  expect(mask(text)).toBe(text);
});

// Patterns that scan a text again and again would make this test take minutes.
test('is done with long texts of any kind', () => {
  const texts = [
    'token'.repeat(800),
    '-'.repeat(4000),
    'a'.repeat(4000),
    '://'.repeat(1300),
    ' '.repeat(4000),
    'x-key-'.repeat(600),
  ];
  expect(texts.map(mask)).toEqual(texts);
});
