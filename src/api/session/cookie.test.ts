import { expect, test } from 'bun:test';
import { isSameOrigin, sessionOf } from './cookie.ts';

test("the session is found among a browser's cookies by its whole name", () => {
  const of = (cookie: string) => sessionOf(new Headers({ cookie }));
  expect(of('__Host-atoll=abc')).toBe('abc');
  expect(of('a=1; __Host-atoll=abc; b=2')).toBe('abc');
  expect(of('__Host-atoll2=abc; x__Host-atoll=abc')).toBeNull();
  expect(sessionOf(new Headers())).toBeNull();
});

test('only a page of the very same origin counts', () => {
  for (const site of ['same-site', 'cross-site', 'none', ''])
    expect(isSameOrigin(new Headers({ 'sec-fetch-site': site }))).toBe(false);
  expect(isSameOrigin(new Headers())).toBe(false);
  expect(isSameOrigin(new Headers({ 'sec-fetch-site': 'same-origin' }))).toBe(true);
});
