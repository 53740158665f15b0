import { expect, test } from 'bun:test';
import { AtollError } from '../../base/error.ts';
import { apiError, errorResponse } from './error.ts';

test('clients learn only their part of an error', async () => {
  const place = '/mnt/store';
  for (const [error, body] of [
    [new AtollError('conflict', 'it is there', { detail: 'taken' }), { message: 'it is there', error_code: 'taken' }],
    [new AtollError('internal', 'it failed'), { message: 'it failed' }],
    [new AtollError('internal', `the disk ${place} is in use`, { forLog: true }), { message: 'Internal error' }],
    [
      new AtollError('unavailable', `The store ${place} is out of reach`, { detail: 'store_unavailable' }),
      { message: 'The store of this cluster does not answer; try again', error_code: 'store_unavailable' },
    ],
    [
      new AtollError('precondition', `The store ${place} can't be written`, { detail: 'store_refused' }),
      { message: expect.stringContaining('refuses what it is asked'), error_code: 'store_refused' },
    ],
    [new AtollError('invalid', 'x'.repeat(3000)), { message: `${'x'.repeat(2000)}…` }],
  ] as const)
    expect(apiError(error)).toEqual({ code: error.status, ...body });
  const known = errorResponse(new AtollError('unavailable', 'later', { retryAfterSeconds: 7 }));
  expect([known.status, known.headers.get('retry-after'), await known.json()]).toEqual([
    ...[503, '7', { code: 503, message: 'later' }],
  ]);
  expect(known.headers.has('should-retry')).toBe(false);
  const bug = errorResponse(new Error(place));
  expect([bug.status, await bug.json()]).toEqual([500, { code: 500, message: 'Internal error' }]);
});

test('clients must not repeat by themselves what does not pass by itself', () => {
  const marks = (['unavailable', 'deadline_exceeded', 'rate_limited', 'conflict', 'internal'] as const).map(code =>
    errorResponse(new AtollError(code, 'no')).headers.get('should-retry'),
  );
  expect(marks).toEqual(['false', 'false', 'false', null, null]);
});

test('if undoing fails as well, the first failure is reported, and text for the log stays there', async () => {
  const first = new AtollError('internal', 'a path', { forLog: true });
  const both = errorResponse(new SuppressedError(new Error('undo'), first));
  expect(await both.json()).toEqual({ code: 500, message: 'Internal error' });
});
