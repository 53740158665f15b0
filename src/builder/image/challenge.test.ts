import { expect, test } from 'bun:test';
import { readChallenge } from './challenge.ts';

test.each([
  [
    'Bearer realm="https://auth.example/token",service="registry",scope="repository:a/b:pull"',
    'bearer',
    { realm: 'https://auth.example/token', service: 'registry', scope: 'repository:a/b:pull' },
  ],
  ['Basic realm="r"', 'basic', { realm: 'r' }],
  ['  bearer  REALM=plain , service = x', 'bearer', { realm: 'plain' }],
  ['Bearer realm="open', 'bearer', { realm: 'open' }],
  ['', '', {}],
  ['=', '', {}],
] as const)('%p', (header, scheme, parameters) => {
  const found = readChallenge(header);
  expect(found.scheme).toBe(scheme);
  expect(Object.fromEntries(found.parameters)).toEqual(parameters);
});

test('only the first 4 KiB of a header count', () => {
  const { parameters } = readChallenge(`Bearer ${'a'.repeat(5_000)}, realm="x"`);
  expect(parameters.size).toBe(0);
});
