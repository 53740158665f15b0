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

test('what is not of its kind is said by its name', () => {
  const wrong = (text: string) => () => readCode('JavaScript', `Sandbox.create('a', ${text})`);
  expect(wrong("{ metadata: 'x' }")).toThrow('metadata is no object');
  expect(wrong('{ metadata: ["x"] }')).toThrow('metadata is no object');
  expect(wrong("{ timeoutMs: 'x' }")).toThrow('timeoutMs is no number');
  expect(wrong('{ allowInternetAccess: 1 }')).toThrow('allowInternetAccess is no true or false');
  expect(wrong("{ network: { allowOut: ['a', 1] } }")).toThrow('allowOut is no list of texts');
  expect(wrong("{ network: { allowOut: 'a' } }")).toThrow('allowOut is no list of texts');
  expect(wrong('{ lifecycle: { onTimeout: 1 } }')).toThrow('onTimeout is no text');
  expect(wrong('[]')).toThrow('takes a template and options');
  expect(() => readCode('JavaScript', 'Sandbox.create(1)')).toThrow('takes a template and options');
  expect(() => readCode('JavaScript', 'Sandbox.create(a=1)')).toThrow('takes a template and options');
  expect(() => readCode('Python', 'Sandbox.create("a", "b")')).toThrow('everything else has a name');
  expect(() => readCode('curl', "-d '[]'")).toThrow('The body is no object');
  expect(() => readCode('curl', '-d \'{"volumeMounts":{}}\'')).toThrow('volumeMounts is no list');
});

test('a host has one rule, and that sets headers and does nothing else', () => {
  const of = (rule: string) => () => readCode('JavaScript', `Sandbox.create({ network: { rules: { h: ${rule} } } })`);
  expect(of("[{ transform: { headers: { A: '1' } } }]")().rules).toEqual({ h: { A: '1' } });
  for (const rule of ['[]', '[{}, {}]', '{}', '[null]', "['x']", '[[]]'])
    expect(of(rule)).toThrow('rules.h is no list of one rule');
  expect(of('[{ other: 1 }]')).toThrow('nothing for other');
  expect(of('[{ transform: { path: 1 } }]')).toThrow('nothing for path');
  expect(of('[{ transform: { headers: { A: 1 } } }]')).toThrow('headers.A is no text');
});

test('a member that the form has no place for is said at every depth, in every language', () => {
  expect(() => readCode('JavaScript', 'Sandbox.create({ lifecycle: { other: 1 } })')).toThrow('nothing for other');
  expect(() => readCode('Python', 'Sandbox.create(lifecycle={"other": 1})')).toThrow('nothing for other');
  expect(() => readCode('Python', 'Sandbox.create(other=1)')).toThrow('nothing for other');
  expect(() => readCode('Python', 'Sandbox.create(network={"other": 1})')).toThrow('nothing for other');
  expect(() => readCode('curl', '-d \'{"other":1}\'')).toThrow('nothing for other');
  // Parts without a value are not lost.
  expect(readCode('Python', 'Sandbox.create(other=None)').template).toBe('base');
});

test('the body of curl stands between the quotes behind -d', () => {
  expect(readCode('curl', '-d \'{"templateID":"a"}\'').template).toBe('a');
  expect(readCode('curl', "curl -d '{\"templateID\":\"it'\\''s\"}' x").template).toBe("it's");
  for (const text of ["-d '", "curl -X 'POST'", "'x' -d {}"])
    expect(() => readCode('curl', text)).toThrow('There is no body');
  expect(() => readCode('Ruby', 'x')).toThrow('Ruby is not read');
});
