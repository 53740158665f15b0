import { afterEach, expect, spyOn, test } from 'bun:test';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createElement } from 'react';
import { usedHook } from '../../../test/support/hook.ts';
import { rowsOfPages, usePages, useReadOn } from './pages.ts';
import { ViewerContext } from './session.tsx';

afterEach(() => (fetch as unknown as { mockRestore?(): void }).mockRestore?.());

/** A list of numbers, read in pages of 100; `how` says where the next page begins. */
async function listOf(length: number, how: 'token' | 'offset' | 'body', options: object = {}, readOn = false) {
  const asked: URLSearchParams[] = [];
  const teams: (string | null)[] = [];
  const given = { failing: false, path: '/things', options, readOn };
  spyOn(globalThis, 'fetch').mockImplementation((async (path: string, init: RequestInit) => {
    const { searchParams } = new URL(path, 'http://a');
    asked.push(searchParams);
    teams.push(new Headers(init.headers).get('x-team-id'));
    if (given.failing) return Response.json({ message: 'no' }, { status: 503 });
    const begin = Number(searchParams.get('nextToken') ?? searchParams.get('offset') ?? searchParams.get('from') ?? 0);
    const end = Math.min(length, begin + 100);
    const rows = Array.from({ length: end - begin }, (_, index) => begin + index);
    const headers = { ...(how === 'token' && end < length && { 'X-Next-Token': String(end) }) };
    return Response.json(how === 'body' ? { rows, next: end < length ? end : null } : rows, { headers });
  }) as never);
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, gcTime: Infinity } } });
  const viewer = { session: {}, teams: [], team: { teamID: 't1', name: '', slug: '' } } as never;
  const used = await usedHook(
    () => {
      const pages = usePages<number, never>(given.path, given.options);
      useReadOn(pages as never, given.readOn);
      // Reads every member: a member that nobody reads causes no new render.
      return { ...pages };
    },
    inner => createElement(ViewerContext, { value: viewer }, createElement(QueryClientProvider, { client }, inner)),
  );
  const rows = () => rowsOfPages(used.current() as never);
  const settled = () => used.until(({ isFetching }) => !isFetching);
  const more = async () => {
    const before = used.current().data?.pages.length ?? 0;
    await used.act(() => used.current().fetchNextPage());
    await used.until(({ data, isFetching }) => !isFetching && (data?.pages.length ?? 0) > before);
  };
  await settled();
  return {
    used,
    now: used.current,
    rows,
    more,
    settled,
    asked,
    teams,
    given,
    [Symbol.asyncDispose]: () => used[Symbol.asyncDispose](),
  };
}

test('a list is read page by page, by the token that comes with each', async () => {
  await using list = await listOf(250, 'token', { query: { state: 'x' } });
  expect([list.rows().length, list.now().hasNextPage]).toEqual([100, true]);
  await list.more();
  await list.more();
  expect([list.rows().length, list.rows()[249], list.now().hasNextPage]).toEqual([250, 249, false]);
  expect(list.asked.map(String)).toEqual([
    ...['state=x&limit=100', 'state=x&nextToken=100&limit=100', 'state=x&nextToken=200&limit=100'],
  ]);
  expect(list.teams).toEqual(['t1', 't1', 't1']);
});

test('a list may be skipped into by a number; a page that is not full is the last', async () => {
  await using list = await listOf(250, 'offset', { byOffset: true, personal: true });
  await list.more();
  await list.more();
  expect([list.rows().length, list.now().hasNextPage]).toEqual([250, false]);
  expect(list.asked.map(one => one.get('offset'))).toEqual([null, '100', '200']);
  expect(list.teams).toEqual([null, null, null]);
});

test('an answer may say in its body which rows it has, and what asks for the next', async () => {
  type Body = { rows: number[]; next: number | null };
  const options = {
    rowsOf: ({ rows }: Body) => rows,
    nextOf: ({ next }: Body) => (next === null ? null : { from: next }),
  };
  await using list = await listOf(150, 'body', options);
  await list.more();
  expect([list.rows().length, list.now().hasNextPage, list.asked[1]?.get('from')]).toEqual([150, false, '100']);
});

test('the pages that follow are read while that is wanted, and not again and again where it fails', async () => {
  await using list = await listOf(350, 'token', {}, true);
  await list.used.until(({ hasNextPage, isFetching }) => !hasNextPage && !isFetching);
  expect([list.rows().length, list.asked.length]).toEqual([350, 4]);
  await using other = await listOf(350, 'token');
  other.given.failing = true;
  other.given.readOn = true;
  await other.used.again();
  await other.used.until(({ isError }) => isError);
  await other.used.again();
  expect([other.rows().length, other.asked.length]).toEqual([100, 2]);
});

test('rows of the same list stay while others of it are asked for, and those of another do not', async () => {
  await using list = await listOf(3, 'token', { query: { q: 'a' } });
  const answers = Promise.withResolvers<Response>();
  spyOn(globalThis, 'fetch').mockImplementation((() => answers.promise) as never);
  list.given.options = { query: { q: 'b' } };
  await list.used.again();
  expect([list.rows(), list.now().isFetching]).toEqual([[0, 1, 2], true]);
  list.given.path = '/others';
  await list.used.again();
  expect([list.rows(), list.now().isFetching]).toEqual([[], true]);
});

test('nothing is asked for while that is not wanted', async () => {
  await using list = await listOf(3, 'token', { enabled: false });
  expect([list.asked.length, list.rows()]).toEqual([0, []]);
});
