import { expect, test } from 'bun:test';
import { pathWithin } from './return-path.ts';

const origin = 'https://atoll.example.org';

test('after sign-in, users only return to pages of the dashboard', () => {
  for (const path of ['/dashboard/sandboxes', '/dashboard/sandboxes/abc/files?path=%2Fa&file=%2Fa%2Fb'])
    expect(pathWithin(path, origin)).toBe(path);
  expect(pathWithin('/dashboard/keys#code', origin)).toBe('/dashboard/keys');
});

test('and to nothing else', () => {
  const others = [
    null,
    '',
    'https://evil.example.com/dashboard/x',
    '//evil.example.com/dashboard/x',
    '/\\evil.example.com/dashboard/x',
    'javascript:alert(1)//dashboard/',
    '/dashboard/../docs',
    '/sandboxes',
    '/dashboard',
    '/dashboard/signin?state=x',
    '/dashboard/join',
  ];
  for (const path of others) expect(pathWithin(path, origin)).toBe(null);
});
