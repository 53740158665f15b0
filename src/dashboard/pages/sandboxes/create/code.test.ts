import { expect, test } from 'bun:test';
import { bodyOf, codeOf, parseLines, parsePairs, plainWish as plain } from './code.ts';

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

test('what is not asked for is in no program', () => {
  const { JavaScript, Python, curl } = codeOf(plain, 'http://h');
  expect(JavaScript).toContain('Sandbox.create("base", {\n  timeoutMs: 300000,\n});');
  expect(Python).toContain('Sandbox.create(\n  "base",\n  timeout=300,\n)');
  expect(curl).toContain(`-d '{"templateID":"base","timeout":300,"secure":true}'`);
  expect(bodyOf({ ...plain, allow: ['a.b'] })).toHaveProperty('network', { allowOut: ['a.b'] });
  expect(bodyOf({ ...plain, deny: ['a.b'] })).toHaveProperty('network', { denyOut: ['a.b'] });
  expect(bodyOf({ ...plain, rules: { h: { A: '1' } } })).toHaveProperty('network', {
    rules: { h: [{ transform: { headers: { A: '1' } } }] },
  });
});

test('network and volumes are in the body and in the words of each language', () => {
  const wish = { ...plain, allow: ['*.npmjs.org'], deny: ['0.0.0.0/0'], volumes: { '/data': 'shared' } };
  expect(bodyOf(wish)).toMatchObject({
    network: { allowOut: ['*.npmjs.org'], denyOut: ['0.0.0.0/0'] },
    volumeMounts: [{ name: 'shared', path: '/data' }],
  });
  const { JavaScript, Python } = codeOf(wish, 'http://h');
  expect(JavaScript).toContain('network: {"allowOut":["*.npmjs.org"],"denyOut":["0.0.0.0/0"]}');
  expect(JavaScript).toContain('volumeMounts: {"/data":"shared"}');
  expect(Python).toContain('network={"allow_out":["*.npmjs.org"],"deny_out":["0.0.0.0/0"]}');
  expect(Python).toContain('volume_mounts={"/data":"shared"}');
});

test('lines are trimmed, and empty ones are none', () => {
  expect(parseLines(' a \n\n b')).toEqual(['a', 'b']);
});

test('pairs are lines of name=value', () => {
  expect(parsePairs('a=1\n\nb = x=y')).toEqual({ a: '1', b: ' x=y' });
  expect(parsePairs('')).toEqual({});
  for (const wrong of ['nothing', 'a=1\n=2']) expect(parsePairs(wrong)).toBeNull();
});
