import { afterEach, expect, test } from 'bun:test';
import { controlTokenHeader } from '../protocol/agent.ts';
import { createAfterAnswer } from './after-answer.ts';
import type { Agent } from './agent.ts';
import type { Methods } from './connect/call.ts';
import { Journal } from './journal/journal.ts';
import type { Route, Routes } from './route.ts';
import { serve } from './serve.ts';
import { openSettings } from './settings.ts';

const servers: Bun.Server<undefined>[] = [];
afterEach(() => Promise.all(servers.splice(0).map(server => server.stop(true))));

const methods: Methods = new Map([
  ['/a.A/Echo', { kind: 'unary', messageBytesMax: 100, answer: message => ({ echo: message }) }],
]);
const routes: Routes = new Map<string, Route>([
  ['GET /closed', { answer: () => new Response('closed') }],
  ['GET /open', { open: true, answer: (_, __, url) => new Response(url.search) }],
  [
    'GET /failing',
    {
      answer: () => {
        throw new Error('it broke');
      },
    },
  ],
]);

/** An agent that serves; `ask` sends it a request. */
function serving({ accessToken }: { accessToken: string | null } = { accessToken: 'secret' }) {
  let saved: unknown;
  const state = {
    controlToken: 'control',
    readSettings: () => saved,
    saveSettings: (next: unknown) => void (saved = next),
  };
  const store = openSettings(state as never);
  const agent = {
    ...{ state, store, afterAnswer: createAfterAnswer(), journal: new Journal('epoch') },
    settings: () => store.current,
  } as unknown as Agent;
  const server = serve({ agent, routes, methods }, 0);
  servers.push(server);
  const ask = (method: string, path: string, headers: Record<string, string> = {}, body?: string) =>
    fetch(`http://127.0.0.1:${server.port}${path}`, { method, headers, ...(body !== undefined && { body }) });
  return { agent, ask, server, ready: () => store.take({ accessToken }) };
}
const platform = { [controlTokenHeader]: 'control' };
const token = { 'x-access-token': 'secret' };
const statusOf = async (answer: Promise<Response>) => (await answer).status;

test('an agent without settings says that it is alive, and answers nobody else', async () => {
  const { ask } = serving();
  const health = await ask('GET', '/health');
  expect([health.status, health.headers.get('cache-control')]).toEqual([204, 'no-store']);
  const early = await ask('GET', '/open');
  expect([early.status, await early.json()]).toEqual([503, { code: 503, message: 'the sandbox is not ready yet' }]);
  expect(await statusOf(ask('POST', '/a.A/Echo'))).toBe(503);
  expect(await statusOf(ask('POST', '/health'))).toBe(503);
});

test('the platform alone gives settings and reads the log', async () => {
  const { ask, agent } = serving();
  for (const [method, path, headers] of [
    ['POST', '/init', {}],
    ['POST', '/init', { [controlTokenHeader]: 'other' }],
    ['GET', '/init', platform],
    ['GET', '/logs?once', {}],
    ['POST', '/logs?once', platform],
  ] as const) {
    const answer = await ask(method, path, headers);
    expect([path, answer.status]).toEqual([path, 404]);
    expect(await answer.json()).toMatchObject({ message: `there is no ${method} ${path.split('?')[0]}` });
  }
  expect(agent.store.current).toBeUndefined();
  // This waits together with the files: the test's files are the host's.
  agent.afterAnswer.later = () => {};
  expect(await statusOf(ask('POST', '/init', platform, '{"accessToken":"new","filesLater":true}'))).toBe(204);
  expect(agent.store.current?.accessToken).toBe('new');
  agent.journal.add('info', 'agent', 'an entry', {});
  const log = await ask('GET', '/logs?once', platform);
  expect([log.status, await log.text()]).toEqual([200, expect.stringContaining('an entry')]);
});

test('calls and routes need the token of the sandbox, but for open routes', async () => {
  const { ask, ready } = serving();
  ready();
  const json = { 'content-type': 'application/json' };
  expect(await statusOf(ask('POST', '/a.A/Echo', json, '{}'))).toBe(401);
  const call = await ask('POST', '/a.A/Echo', { ...json, ...token }, '{"a":1}');
  expect([call.status, await call.json()]).toEqual([200, { echo: { a: 1 } }]);
  const other = await ask('GET', '/a.A/Echo', token);
  expect([other.status, other.headers.get('allow')]).toEqual([405, 'POST']);
  expect(await statusOf(ask('GET', '/closed'))).toBe(401);
  expect(await (await ask('GET', '/closed', token)).text()).toBe('closed');
  expect(await (await ask('GET', '/open?a=1')).text()).toBe('?a=1');
  // Whoever has no token does not learn which routes exist.
  expect(await statusOf(ask('GET', '/nothing'))).toBe(401);
  expect(await statusOf(ask('GET', '/nothing', token))).toBe(404);
  expect(await statusOf(ask('DELETE', '/closed', token))).toBe(404);
});

test('every GET route also answers HEAD', async () => {
  const { ask, ready } = serving();
  ready();
  expect(await statusOf(ask('HEAD', '/open'))).toBe(200);
  expect(await statusOf(ask('HEAD', '/closed', token))).toBe(200);
  expect(await statusOf(ask('HEAD', '/nothing', token))).toBe(404);
  expect(await statusOf(ask('POST', '/closed', token))).toBe(404);
});

test('pages of other origins may ask, and read answers and errors', async () => {
  const { ask, ready } = serving();
  const origin = { origin: 'https://a.test' };
  const before = await ask('OPTIONS', '/closed', { ...origin, 'access-control-request-headers': 'x-access-token' });
  expect([before.status, before.headers.get('access-control-allow-headers')]).toEqual([204, 'x-access-token']);
  ready();
  for (const path of ['/open', '/closed', '/failing']) {
    const { headers } = await ask('GET', path, origin);
    expect([path, headers.get('access-control-allow-origin')]).toEqual([path, '*']);
  }
  const failing = await ask('GET', '/failing', token);
  expect([failing.status, await failing.json()]).toEqual([500, { code: 500, message: 'it broke' }]);
});

test('work that waits for an answer is done before the next request', async () => {
  const { ask, agent, ready } = serving({ accessToken: null });
  ready();
  const did: string[] = [];
  const { settle } = agent.afterAnswer;
  let isOver = false;
  agent.afterAnswer.settle = () => {
    if (!isOver) did.push('waiting');
    isOver = true;
    settle();
  };
  expect(await statusOf(ask('GET', '/closed'))).toBe(200);
  expect(did).toEqual(['waiting']);
});

test('an agent is reached over both kinds of addresses', async () => {
  const { server, ready } = serving({ accessToken: null });
  ready();
  for (const host of ['127.0.0.1', '[::1]'])
    expect(await statusOf(fetch(`http://${host}:${server.port}/closed`))).toBe(200);
});
