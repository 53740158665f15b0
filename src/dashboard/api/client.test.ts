import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test';
import { ask, askJson, failureOf, withQuery } from './client.ts';

/** The last request, and its answer. */
let [asked, answer]: [[url: unknown, init: RequestInit | undefined][], () => Promise<Response>] = [[], never];
function never(): Promise<Response> {
  return Promise.reject(new TypeError('not connected'));
}
beforeEach(() => {
  [asked, answer] = [[], async () => new Response()];
  spyOn(globalThis, 'fetch').mockImplementation(((url: unknown, init?: RequestInit) => {
    asked.push([url, init]);
    return answer();
  }) as typeof fetch);
});
afterEach(() => void (fetch as unknown as { mockRestore(): void }).mockRestore());

test('a query has the members that say something', () => {
  expect(withQuery('/a')).toBe('/a');
  expect(withQuery('/a', { b: undefined, c: '' })).toBe('/a');
  expect(withQuery('/a', { b: 0, c: false, d: 'x y&z' })).toBe('/a?b=0&c=false&d=x+y%26z');
});

test('who asks for nothing special sends nothing special', async () => {
  await ask('/teams', { query: { limit: 1 } });
  expect(asked).toEqual([['/teams?limit=1', { method: 'GET', headers: {} }]]);
});

test('a team, a token and a body are said, and a file goes as it is', async () => {
  const { signal } = new AbortController();
  await ask('/a', { method: 'POST', team: 't1', bearer: 'b', body: { c: 1 }, signal });
  expect(asked[0]?.[1]).toEqual({
    method: 'POST',
    headers: { 'X-Team-ID': 't1', Authorization: 'Bearer b', 'Content-Type': 'application/json' },
    body: '{"c":1}',
    signal,
  });
  const file = new Blob(['x']);
  await ask('/a', { method: 'PUT', body: file });
  expect(asked[1]?.[1]).toEqual({ method: 'PUT', headers: {}, body: file });
  await ask('/a', { method: 'PUT', body: null });
  expect(asked[2]?.[1]).toMatchObject({ headers: { 'Content-Type': 'application/json' }, body: 'null' });
});

test('an answer is JSON, or nothing', async () => {
  answer = async () => Response.json([1]);
  expect(await askJson<number[]>('/a')).toEqual([1]);
  answer = async () => new Response(null, { status: 204 });
  expect(await askJson<undefined>('/a')).toBeUndefined();
});

test('a failure has the words and the code of the platform, where it says them', async () => {
  answer = async () => Response.json({ message: 'No such team', error_code: 'not_found' }, { status: 404 });
  await expect(ask('/a')).rejects.toMatchObject({ status: 404, message: 'No such team', code: 'not_found' });
  for (const body of ['<html>', 'null', '{"message":1,"error_code":2}'])
    expect(await failureOf(new Response(body, { status: 502 }))).toMatchObject({
      ...{ status: 502, message: 'The platform answered 502', code: '' },
    });
});

test('a platform that is away says so, and what was given up is no failure of it', async () => {
  answer = never;
  await expect(ask('/a')).rejects.toMatchObject({ status: 0, message: expect.stringContaining('does not answer') });
  const stop = new AbortController();
  await expect(ask('/a', { signal: stop.signal })).rejects.toMatchObject({ status: 0 });
  stop.abort();
  await expect(ask('/a', { signal: stop.signal })).rejects.toThrow(new TypeError('not connected'));
});
