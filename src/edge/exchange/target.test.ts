import { expect, test } from 'bun:test';
import { Share } from '../../base/concurrency/share.ts';
import type { RequestHead } from '../../http1/request-head.ts';
import { failureOf } from './target.ts';

test('what the API may have done before it went is not answered with 503, which clients take for a promise', () => {
  const api = { traffic: null, directory: null, port: 0, plan: { host: null, upgrade: false } };
  const target = { ...api, place: new Share('everybody', 1, null), isForeign: false, isInert: false };
  const answerTo = (method: string) =>
    failureOf(target, 'closed the connection', { methodIs: (other: string) => other === method } as RequestHead);
  for (const method of ['GET', 'HEAD', 'OPTIONS'])
    expect(answerTo(method)).toMatchObject({ status: 503, body: { code: 503 } });
  for (const method of ['POST', 'PATCH', 'PUT', 'DELETE'])
    expect(answerTo(method)).toMatchObject({ status: 500, body: { code: 500, error_code: 'api_connection_lost' } });
});
