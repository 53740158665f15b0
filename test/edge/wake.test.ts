import { expect, test } from 'bun:test';
import { AtollError } from '../../src/base/error.ts';
import { onlyRunningHeader } from '../../src/protocol/agent.ts';
import { type FixtureOptions, startFixture, to } from './support/fixture.ts';

async function startSleeping(ingress: Record<string, unknown> = {}, wake?: FixtureOptions['wake']) {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('awake') });
  const fixture = startFixture(wake === undefined ? {} : { wake });
  fixture.mapPort(80, Number(server.port));
  fixture.mapPort(49983, Number(server.port));
  fixture.sandbox('one', { state: 'paused', ingress: { autoResume: true, ...ingress } });
  return {
    fixture,
    ask: (port: number, headers: Record<string, string> = {}) =>
      fetch(fixture.url, { headers: { ...to('one', port), ...headers } }),
    async [Symbol.asyncDispose]() {
      await fixture[Symbol.asyncDispose]();
      await server.stop(true);
    },
  };
}

test('traffic wakes a sandbox that may be woken, and is then served', async () => {
  await using asleep = await startSleeping();
  const response = await asleep.ask(80);
  expect([response.status, await response.text()]).toEqual([200, 'awake']);
  expect((await asleep.ask(80)).status).toBe(200);
  expect(asleep.fixture.wakes).toEqual(['one']);
});

test('a sandbox still pausing is woken too', async () => {
  await using asleep = await startSleeping();
  asleep.fixture.sandbox('one', { state: 'pausing' });
  expect((await asleep.ask(80)).status).toBe(200);
});

test('asking whether a sandbox runs wakes none, whoever asks; SDKs do so by themselves when a pause cuts a stream', async () => {
  await using asleep = await startSleeping({ accessToken: 'agent-token' });
  for (const state of ['pausing', 'paused'] as const) {
    asleep.fixture.sandbox('one', { state });
    for (const method of ['GET', 'HEAD']) {
      const response = await fetch(`${asleep.fixture.url}/health`, {
        method,
        headers: { ...to('one', 49983), 'X-Access-Token': 'agent-token' },
      });
      expect(response.status).toBe(502);
    }
  }
  expect(asleep.fixture.wakes).toEqual([]);
  // For a service of the sandbox's own, the same path is like any other.
  expect((await fetch(`${asleep.fixture.url}/health`, { headers: to('one', 80) })).status).toBe(200);
});

test('who only looks at a sandbox says so to the agent, and wakes none', async () => {
  await using asleep = await startSleeping();
  const looking = { [onlyRunningHeader]: '1' };
  for (const state of ['pausing', 'paused'] as const) {
    asleep.fixture.sandbox('one', { state });
    expect((await asleep.ask(49983, looking)).status).toBe(502);
  }
  expect(asleep.fixture.wakes).toEqual([]);
  // The sandbox's own services know nothing of that.
  expect((await asleep.ask(80, looking)).status).toBe(200);
  expect((await asleep.ask(49983, looking)).status).toBe(200);
});

test('without the policy a paused sandbox is not found', async () => {
  await using asleep = await startSleeping({ autoResume: false });
  const response = await asleep.ask(80);
  expect([response.status, ((await response.json()) as { message: string }).message]).toEqual([
    502,
    'The sandbox was not found',
  ]);
  expect(asleep.fixture.wakes).toEqual([]);
});

test('the agent of a secured sandbox is woken only by its token', async () => {
  await using asleep = await startSleeping({ accessToken: 'agent-token' });
  for (const headers of [{}, { 'X-Access-Token': 'wrong' }]) {
    const response = await asleep.ask(49983, headers);
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({
      sandboxId: 'one',
      code: 403,
      message: expect.stringContaining('X-Access-Token'),
    });
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
  }
  expect(asleep.fixture.wakes).toEqual([]);
  expect((await asleep.ask(49983, { 'X-Access-Token': 'agent-token' })).status).toBe(200);
});

test('other ports of a secured sandbox wake it without a token', async () => {
  await using asleep = await startSleeping({ accessToken: 'agent-token' });
  expect((await asleep.ask(80)).status).toBe(200);
});

test('private traffic wakes only by its token, the agent only by its own', async () => {
  await using asleep = await startSleeping({ accessToken: 'agent-token', trafficAccessToken: 'secret' });
  expect((await asleep.ask(80)).status).toBe(403);
  expect((await asleep.ask(80, { 'X-Access-Token': 'agent-token' })).status).toBe(403);
  expect((await asleep.ask(49983, { 'E2b-Traffic-Access-Token': 'secret' })).status).toBe(403);
  expect(asleep.fixture.wakes).toEqual([]);
  expect((await asleep.ask(80, { 'E2b-Traffic-Access-Token': 'secret' })).status).toBe(200);
});

test('what stops a wake is answered by its reason', async () => {
  for (const [error, status] of [
    [new AtollError('not_found', 'gone'), 502],
    [new AtollError('conflict', 'in transition'), 409],
    [new AtollError('rate_limited', 'limit'), 429],
    [new AtollError('forbidden', 'no'), 403],
    [new AtollError('unavailable', 'no room'), 503],
    [new Error('bug'), 503],
  ] as const) {
    await using asleep = await startSleeping({}, () => Promise.reject(error));
    const response = await asleep.ask(80);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ sandboxId: 'one', code: status });
  }
});

test('a client that goes away ends the wait', async () => {
  const waiting = Promise.withResolvers<AbortSignal>();
  const fixture = startFixture({
    directory: {
      running: () => [],
      find: sandboxId => ({
        sandboxId,
        teamId: 'team',
        executionId: 'e',
        nodeId: 'n',
        state: 'paused',
        ingress: {
          trafficAccessToken: null,
          accessToken: null,
          maskRequestHost: null,
          httpsPorts: [],
          autoResume: true,
        },
      }),
      wake(_, signal) {
        waiting.resolve(signal);
        return new Promise(() => {});
      },
    },
  });
  await using _ = fixture;
  const abort = new AbortController();
  const response = fetch(fixture.url, { headers: to('one', 80), signal: abort.signal }).catch(() => 'aborted');
  const signal = await waiting.promise;
  abort.abort();
  expect(await response).toBe('aborted');
  if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve));
  expect(signal.aborted).toBe(true);
});

test('who would wake a sandbox for which there is no room is told that it is paused, and not how full machines are', async () => {
  await using asleep = await startSleeping({}, () => {
    const message = 'There is no room to resume sandbox "one" now; it stays paused (node 1: 8 of 8 CPUs are promised)';
    throw new AtollError('unavailable', message, { detail: 'sandbox_capacity_unavailable', retryAfterSeconds: 5 });
  });
  const answer = await asleep.ask(80);
  expect([answer.status, answer.headers.get('Retry-After')]).toEqual([503, '5']);
  const message = 'The sandbox is paused, and there is no room to resume it now; try again later';
  expect(await answer.json()).toEqual({ sandboxId: 'one', message, code: 503 });
  const browser = { 'User-Agent': 'Mozilla/5.0 Firefox/140.0', Accept: 'text/html', 'Sec-Fetch-Mode': 'navigate' };
  const page = await asleep.ask(80, browser);
  expect(await page.text()).toContain('There is no room for this sandbox now');
});
