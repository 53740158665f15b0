import { afterEach, beforeEach, expect, jest, spyOn, test } from 'bun:test';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createElement } from 'react';
import { usedHook } from '../../../test/support/hook.ts';
import { Connections, ConnectionsContext } from './connections.ts';
import { useEventStream } from './event-stream.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => {
  jest.useRealTimers();
  (fetch as unknown as { mockRestore?(): void }).mockRestore?.();
});

/** A page that follows a team; the test writes what the API sends. */
async function following(first: string | undefined, connections = new Connections(4)) {
  const opened: { path: string; team: string | null; signal: AbortSignal | null | undefined }[] = [];
  const given = { team: first, status: 200 };
  let writer: ReadableStreamDefaultController<Uint8Array> | undefined;
  spyOn(globalThis, 'fetch').mockImplementation((async (path: string, init: RequestInit) => {
    opened.push({ path, team: new Headers(init.headers).get('x-team-id'), signal: init.signal });
    if (given.status !== 200) return Response.json({ message: 'no' }, { status: given.status });
    return new Response(new ReadableStream<Uint8Array>({ start: controller => void (writer = controller) }));
  }) as never);
  const client = new QueryClient();
  const renewed: string[] = [];
  const keys = ['/v2/sandboxes', '/sandboxes', '/events', '/snapshots', '/templates', '/v2/templates', '/volumes'];
  for (const key of [...keys, '/session', '/keys']) client.setQueryData([key], 1);
  spyOn(client, 'invalidateQueries').mockImplementation((async (filters: {
    queryKey?: [string];
    predicate?: (query: { queryKey: string[] }) => boolean;
  }) => {
    if (filters.queryKey) renewed.push(...filters.queryKey);
    else renewed.push(...[...keys, '/keys'].filter(key => filters.predicate?.({ queryKey: [key] })));
  }) as never);
  const used = await usedHook(
    () => useEventStream(given.team),
    inner =>
      createElement(ConnectionsContext, { value: connections }, createElement(QueryClientProvider, { client }, inner)),
  );
  /** A stream's bytes take several turns of the loop; this waits for no clock. */
  const settle = () =>
    used.act(async () => {
      for (let turn = 0; turn < 50; turn++) await new Promise<void>(resolve => queueMicrotask(resolve));
    });
  const says = async (event: string, data: unknown, id = '') => {
    writer?.enqueue(Buffer.from(`${id && `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
    await settle();
  };
  const pass = async (ms: number) => {
    await used.act(() => void jest.advanceTimersByTime(ms));
    await settle();
  };
  const took = () => renewed.splice(0);
  await settle();
  return {
    ...{ used, given, opened, says, pass, settle, took, live: used.current },
    cut: async () => {
      writer?.error(new Error('cut'));
      await settle();
    },
    [Symbol.asyncDispose]: () => used[Symbol.asyncDispose](),
  };
}

test('a team is followed, and what hears it says so', async () => {
  await using page = await following('t1');
  expect(page.opened).toMatchObject([{ path: '/events/stream?transitions=true', team: 't1' }]);
  expect(page.live()).toBe(false);
  await page.says('ready', {});
  expect(page.live()).toBe(true);
});

test('what happened to a thing has all be asked again that shows it, a few times a second', async () => {
  await using page = await following('t1');
  await page.says('message', { subject: { kind: 'volume' } });
  expect(page.took()).toEqual(['/events', '/volumes']);
  await page.says('message', { subject: { kind: 'build' } });
  await page.says('message', { subject: { kind: 'volume' } });
  await page.says('message', {});
  expect(page.took()).toEqual([]);
  await page.pass(300);
  expect(page.took()).toEqual(['/events', '/templates', '/v2/templates', '/volumes']);
  await page.pass(300);
  await page.says('message', { subject: { kind: 'sandbox' } });
  expect(page.took()).toEqual(['/v2/sandboxes', '/sandboxes', '/events', '/snapshots', '/templates']);
});

test('sandboxes between two states are asked for again where there are others than were', async () => {
  await using page = await following('t1');
  await page.says('transitions', []);
  expect(page.took()).toEqual([]);
  await page.says('transitions', ['i1']);
  expect(page.took()).toEqual(['/v2/sandboxes', '/sandboxes']);
  await page.pass(300);
  await page.says('transitions', ['i1']);
  await page.pass(300);
  expect(page.took()).toEqual([]);
});

test('a stream that is cut goes on behind its last event', async () => {
  await using page = await following('t1');
  await page.says('ready', {}, '7');
  await page.cut();
  expect(page.live()).toBe(false);
  await page.pass(2_000);
  expect(page.opened.map(({ path }) => path)).toEqual([
    ...['/events/stream?transitions=true', '/events/stream?after=7&transitions=true'],
  ]);
  await page.says('ready', {});
  expect(page.live()).toBe(true);
  expect(page.took()).toEqual([]);
});

test('who is signed out is asked who it is', async () => {
  await using page = await following('t1');
  page.given.status = 503;
  await page.cut();
  await page.pass(2_000);
  expect(page.took()).toEqual([]);
  page.given.status = 401;
  await page.pass(2_000);
  expect(page.took()).toEqual(['/session']);
});

test('nothing is followed without a team, another team instead of the first, and none at the end', async () => {
  const page = await following(undefined);
  expect(page.opened).toEqual([]);
  page.given.team = 't1';
  await page.used.again();
  await page.settle();
  page.given.team = 't2';
  await page.used.again();
  await page.settle();
  expect(page.opened.map(({ team, signal }) => [team, signal?.aborted])).toEqual([
    ['t1', true],
    ['t2', false],
  ]);
  await page[Symbol.asyncDispose]();
  expect(page.opened[1]?.signal?.aborted).toBe(true);
});

test('a page whose connections are in use waits for one', async () => {
  const connections = new Connections(1);
  const other = new AbortController();
  await connections.hold({ isShown: () => true }, other.signal);
  await using page = await following('t1', connections);
  expect(page.opened).toEqual([]);
  other.abort();
  await page.settle();
  expect(page.opened).toHaveLength(1);
});
