import { expect, test } from 'bun:test';
import { isInternalRoute } from './internal-routes.ts';

test('internal routes are found in every disguise', () => {
  for (const target of [
    ...['/init', '/freeze', '/unfreeze', '/collapse', '/fsfreeze', '/fsthaw', '/upgrade'],
    ...[
      '//init',
      '///init//',
      '/init/',
      '/x/../init',
      '/./init',
      '/x/y/../../init',
      '/../init',
      '/init?x=1',
      '/init#x',
    ],
    ...['/%69nit', '/%69%6e%69%74', '/%2e/init', '/x/%2e%2e/init', '/x%2f..%2finit', '/%2569nit', '/%252569nit'],
    ...[
      '/INIT',
      '/Init',
      '\\init',
      '/x\\..\\init',
      '/x%5c..%5cinit',
      '/init;a=b',
      '/x;y/../init',
      '/init%00',
      '/init%3fx',
      '/init%20',
    ],
    'init',
  ]) {
    expect([target, isInternalRoute(target)]).toEqual([target, true]);
  }
});

test('other routes pass', () => {
  for (const target of [
    '/',
    '/initialize',
    '/files?path=/init',
    '/process.Process/Start',
    '/a/init',
    '/init/a',
    '/%',
    '/%zz',
    '/health',
    '*',
  ]) {
    expect([target, isInternalRoute(target)]).toEqual([target, false]);
  }
});
