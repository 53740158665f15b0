import { afterEach, beforeEach, expect, jest, spyOn, test } from 'bun:test';
import { createElement } from 'react';
import { usedHook } from '../../../test/support/hook.ts';
import type { Query } from './client.ts';
import { Connections, ConnectionsContext } from './connections.ts';
import { shownMax, useLogStream } from './log-stream.ts';
import { ViewerContext } from './session.tsx';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => {
  jest.useRealTimers();
  (fetch as unknown as { mockRestore?(): void }).mockRestore?.();
});

type Line = { n: number };

/** A followed log; the test writes what the API sends. */
async function following(keep?: 'newest' | 'oldest', connections = new Connections(4)) {
  const opened: { path: string; team: string | null; signal: AbortSignal | null | undefined }[] = [];
  const given: { path: string; query: Query; status: number } = { path: '/logs', query: { tail: 10 }, status: 200 };
  let writer: ReadableStreamDefaultController<Uint8Array> | undefined;
  spyOn(globalThis, 'fetch').mockImplementation((async (path: string, init: RequestInit) => {
    opened.push({ path, team: new Headers(init.headers).get('x-team-id'), signal: init.signal });
    if (given.status !== 200) return Response.json({ message: 'no' }, { status: given.status });
    return new Response(new ReadableStream<Uint8Array>({ start: controller => void (writer = controller) }));
  }) as never);
  const viewer = { session: {}, teams: [], team: { teamID: 't1', name: '', slug: '' } } as never;
  const used = await usedHook(
    () => useLogStream<Line>(given.path, given.query, keep),
    inner =>
      createElement(ConnectionsContext, { value: connections }, createElement(ViewerContext, { value: viewer }, inner)),
  );
  /** A stream's bytes take several turns of the loop; this waits for no clock. */
  const settle = () =>
    used.act(async () => {
      for (let turn = 0; turn < 50; turn++) await new Promise<void>(resolve => queueMicrotask(resolve));
    });
  const send = async (text: string) => {
    writer?.enqueue(Buffer.from(text));
    await settle();
  };
  const pass = async (ms: number) => {
    await used.act(() => void jest.advanceTimersByTime(ms));
    await settle();
  };
  const entriesFrom = (first: number, count: number) =>
    Array.from({ length: count }, (_, index) => `id: ${first + index}\ndata: {"n":${first + index}}\n\n`).join('');
  const numbers = () => used.current().entries?.map(({ n }) => n);
  await settle();
  return {
    ...{ used, given, opened, settle, pass, numbers, log: used.current },
    says: (event: string, data: unknown) => send(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
    writes: (first: number, count: number) => send(entriesFrom(first, count)),
    cut: async () => {
      writer?.error(new Error('cut'));
      await settle();
    },
    [Symbol.asyncDispose]: () => used[Symbol.asyncDispose](),
  };
}

test('a log is followed: what is there, then what comes, shown together', async () => {
  await using page = await following();
  expect(page.opened).toMatchObject([{ path: '/logs?tail=10', team: 't1' }]);
  expect(page.log()).toEqual({ entries: null, dropped: 0, isLive: false, end: null, error: null });
  await page.writes(1, 2);
  expect(page.log().entries).toBeNull();
  await page.pass(60);
  expect(page.log().entries).toEqual([
    { n: 1, place: '1' },
    { n: 2, place: '2' },
  ]);
  await page.says('ready', {});
  expect(page.log().isLive).toBe(true);
  await page.writes(3, 1);
  await page.writes(4, 1);
  expect(page.numbers()).toEqual([1, 2]);
  await page.pass(60);
  expect(page.numbers()).toEqual([1, 2, 3, 4]);
});

test('an empty log is known to be empty once it is ready', async () => {
  await using page = await following();
  await page.says('ready', {});
  await page.pass(60);
  expect([page.log().entries, page.log().isLive]).toEqual([[], true]);
});

test('a log that ends says what of', async () => {
  await using page = await following();
  await page.says('ready', {});
  await page.says('end', { status: 'ready' });
  expect([page.log().isLive, page.log().end]).toEqual([false, { status: 'ready' }]);
  await page.pass(10_000);
  expect(page.opened).toHaveLength(1);
});

test('a log that is cut goes on behind its last entry, and says so meanwhile', async () => {
  await using page = await following();
  await page.says('ready', {});
  await page.writes(1, 2);
  await page.cut();
  expect([page.log().isLive, page.log().error?.message]).toEqual([false, 'cut']);
  await page.pass(2_000);
  expect(page.opened[1]?.path).toBe('/logs?after=2');
  await page.says('ready', {});
  expect([page.log().isLive, page.log().error, page.numbers()]).toEqual([true, null, [1, 2]]);
});

test('the newest entries of a long log are shown, with the number of earlier ones', async () => {
  await using page = await following();
  await page.writes(0, shownMax);
  await page.pass(60);
  expect([page.numbers()?.length, page.log().dropped]).toEqual([shownMax, 0]);
  await page.writes(shownMax, 3);
  await page.pass(60);
  await page.writes(shownMax + 3, 2);
  await page.pass(60);
  expect([page.numbers()?.length, page.numbers()?.[0], page.log().dropped]).toEqual([shownMax, 5, 5]);
});

test('if the oldest entries are wanted, no more is read than is shown', async () => {
  await using page = await following('oldest');
  await page.says('ready', {});
  await page.writes(0, shownMax - 1);
  await page.pass(60);
  expect([page.opened[0]?.signal?.aborted, page.log().isLive]).toEqual([false, true]);
  await page.writes(shownMax - 1, 3);
  await page.pass(60);
  expect([page.numbers()?.length, page.numbers()?.at(-1), page.log().dropped]).toEqual([shownMax, shownMax - 1, 0]);
  expect([page.opened[0]?.signal?.aborted, page.log().isLive]).toEqual([true, false]);
});

test('another question begins anew, the same one does not', async () => {
  await using page = await following();
  await page.writes(1, 1);
  await page.pass(60);
  page.given.query = { tail: 10 };
  await page.used.again();
  expect([page.opened.length, page.numbers()]).toEqual([1, [1]]);
  page.given.query = { tail: 20 };
  await page.used.again();
  await page.settle();
  expect([page.opened[0]?.signal?.aborted, page.opened[1]?.path, page.log().entries]).toEqual([
    ...[true, '/logs?tail=20', null],
  ]);
});

test('a page whose connections are in use says why nothing comes', async () => {
  const connections = new Connections(1);
  const other = new AbortController();
  await connections.hold({ isShown: () => true }, other.signal);
  await using page = await following('newest', connections);
  expect([page.opened, page.log().error?.message]).toEqual([
    [],
    expect.stringContaining('waits for another one to end'),
  ]);
  other.abort();
  await page.settle();
  await page.says('ready', {});
  expect([page.opened.length, page.log().error]).toEqual([1, null]);
});

test('what is no longer shown reads nothing and waits for nothing', async () => {
  const page = await following();
  await page.writes(1, 1);
  await page[Symbol.asyncDispose]();
  expect([page.opened[0]?.signal?.aborted, jest.getTimerCount()]).toEqual([true, 0]);
});
