import { expect, test } from 'bun:test';
import { AtollError } from '../../base/error.ts';
import { routeTable } from './match.ts';
import type { Method } from './route.ts';

const defined: Array<[Method, string]> = [
  ['GET', '/things'],
  ['POST', '/things'],
  ['GET', '/things/{id}'],
  ['POST', '/things/fixed'],
  ['GET', '/things/{id}/parts/{part}'],
];
const table = routeTable(defined.map(([method, path]) => ({ method, path })));

test('routes are found by method and raw path, and each parameter is decoded once', () => {
  const found: Array<[method: string, path: string, route: string, params: Record<string, string>]> = [
    ['GET', '/things', '/things', {}],
    ['HEAD', '/things', '/things', {}],
    ['GET', '/things/a%2Fb', '/things/{id}', { id: 'a/b' }],
    ['GET', '/things/a%252Fb', '/things/{id}', { id: 'a%2Fb' }],
    ['GET', '/things/a:b', '/things/{id}', { id: 'a:b' }],
    ['GET', '/things/a%3Ab', '/things/{id}', { id: 'a:b' }],
    ['POST', '/things/fixed', '/things/fixed', {}],
    ['GET', '/things/%C3%BC/parts/%20', '/things/{id}/parts/{part}', { id: 'ü', part: ' ' }],
  ];
  for (const [method, path, route, params] of found) {
    expect(table(method, path)).toMatchObject({ kind: 'found', route: { path: route }, params });
  }
});

test('an unknown path is not found, and a wrong method gets the right ones', () => {
  for (const path of [
    '/',
    '',
    '//things',
    '/things/',
    '/things//parts/x',
    '/thing',
    '/things/a/b',
    '/things/a/parts',
    '/THINGS',
  ]) {
    expect({ path, ...table('GET', path) }).toEqual({ path, kind: 'not_found' });
  }
  expect(table('PUT', '/things')).toEqual({ kind: 'method_not_allowed', allowed: ['GET', 'POST'] });
  // A fixed segment hides the parameter in its place, for every method.
  expect(table('GET', '/things/fixed')).toEqual({ kind: 'method_not_allowed', allowed: ['POST'] });
});

test('a broken encoding is invalid, and two routes in one place are a bug', () => {
  for (const path of ['/things/%', '/things/%zz', '/things/%E0%A4%A', '/things/%ff']) {
    expect(() => table('GET', path)).toThrow(AtollError);
  }
  expect(() =>
    routeTable([
      { method: 'GET', path: '/a/{x}' },
      { method: 'GET', path: '/a/{y}' },
    ]),
  ).toThrow('two routes');
});
