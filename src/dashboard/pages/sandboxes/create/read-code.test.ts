import { expect, test } from 'bun:test';
import { bodyOf, codeOf } from './code.ts';
import type { Wish } from './code.ts';
import { readCode } from './read-code.ts';

const all: Wish = {
  template: 'base:v1',
  timeoutSeconds: 90,
  metadata: { user: 'it\'s "ada"', empty: '' },
  env: { A: 'x\ny', B: '$HOME' },
  internet: false,
  allow: ['*.npmjs.org'],
  deny: ['0.0.0.0/0'],
  rules: { 'api.example.com': { Authorization: 'Bearer ${e2b.secrets.api-key}', 'X-Two': '2' } },
  volumes: { '/data': 'shared' },
  pauseAtEnd: true,
};
const least: Wish = { ...all, metadata: {}, env: {}, internet: true, allow: [], deny: [], rules: {}, volumes: {} };

test('what a program is written from is read from it again, in every language', () => {
  for (const wish of [all, least, { ...least, pauseAtEnd: false }])
    for (const [language, text] of Object.entries(codeOf(wish, 'http://h')))
      expect({ language, wish: readCode(language, text) }).toEqual({ language, wish });
});

test('what is left out is what the form begins with', () => {
  const wish = readCode('JavaScript', 'const s = await Sandbox.create()');
  expect(bodyOf(wish)).toEqual({ templateID: 'base', timeout: 300, secure: true });
  expect(readCode('Python', 'Sandbox.create(template="x", timeout=60)')).toMatchObject({
    template: 'x',
    timeoutSeconds: 60,
  });
  expect(readCode('JavaScript', 'Sandbox.create({ timeoutMs: 1500 })').timeoutSeconds).toBe(1.5);
});

test('what the form has no place for is not lost but said', () => {
  const wrong = (language: string, text: string) => () => readCode(language, text);
  expect(wrong('JavaScript', "Sandbox.create('a', { mcp: {} })")).toThrow('nothing for mcp');
  expect(wrong('Python', 'Sandbox.create(network={"egress_proxy": {}})')).toThrow('nothing for egress_proxy');
  expect(wrong('Python', 'Sandbox.create(timeout="long")')).toThrow('timeout is no number');
  expect(wrong('curl', 'curl -X POST')).toThrow('There is no body');
  expect(wrong('JavaScript', "Sandbox.create('a', { metadata: { n: 1 } })")).toThrow('metadata.n is no text');
});
