import { dlopen } from 'bun:ffi';
import { afterEach, expect, test } from 'bun:test';
import { AtollError } from '../../base/error.ts';
import { createLog, silentLog } from '../../base/telemetry/log.ts';
import { agentPort } from '../../protocol/agent.ts';
import type { Ingress, Route } from '../../protocol/directory.ts';
import { nodeFull } from '../../protocol/no-room.ts';
import { lost } from '../../protocol/part-lost.ts';
import type { Answer } from '../answer/answer.ts';
import { type SandboxWay, trafficOf } from '../context.ts';
import { Http2Turns } from '../http2-turns.ts';
import { type EdgeLimits, limitsWithin } from '../limits.ts';
import { KnownProtocols } from '../upstream/known-protocols.ts';
import { Teams } from '../upstream/team-traffic.ts';
import { upstreamHandlers } from '../upstream/upstream.ts';
import { answerToTrouble, connect, type Connected, giveUp, takeIdle } from './connect.ts';

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0).reverse()) step();
});

/** A connected descriptor, as the node passes it. */
const {
  socket,
  connect: connectSocket,
  fcntl,
} = dlopen('libc.so.6', {
  socket: { args: ['int', 'int', 'int'], returns: 'int' },
  connect: { args: ['int', 'ptr', 'u32'], returns: 'int' },
  fcntl: { args: ['int', 'int', 'int'], returns: 'int' },
}).symbols;
function dialLoopback(port: number): number {
  const fd = socket(2, 1 | 0o2000000, 0); // AF_INET; SOCK_STREAM, SOCK_CLOEXEC
  if (connectSocket(fd, Uint8Array.of(2, 0, port >> 8, port & 255, 127, 0, 0, 1, ...new Array(8).fill(0)), 16) !== 0)
    throw new AtollError('unavailable', 'nothing listens');
  fcntl(fd, 4, 0o4000); // F_SETFL, O_NONBLOCK
  return fd;
}

const ingress: Ingress = {
  ...{ trafficAccessToken: null, accessToken: null, maskRequestHost: null, httpsPorts: [], autoResume: false },
};
const route = (state: Route['state'] = 'running', more: Partial<Ingress> = {}): Route => ({
  ...{ sandboxId: 's', teamId: 't', executionId: 'e', nodeId: 'n', state },
  ingress: { ...ingress, ...more },
});

type SceneOptions = {
  limits?: Partial<EdgeLimits>;
  dial?: SandboxWay['dial'];
  wake?: (signal: AbortSignal) => Promise<Route>;
};

/** The way into a sandbox whose ports all lead to a silent service of the test. */
function scene({ limits: own = {}, dial, wake = async () => route() }: SceneOptions = {}) {
  const service = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  undo.push(() => service.stop(true));
  const limits = { ...limitsWithin(1000), dialBackoffMs: [1], ...own };
  const counts = { dials: 0, wakes: 0 };
  const teams = new Teams(limits);
  const way: SandboxWay = {
    ...{ limits, log: silentLog, clock: { nowMs: 1_000_000 }, upstreamHandlers: upstreamHandlers(silentLog) },
    directory: { find: () => undefined, running: () => [], wake: (_, signal) => (counts.wakes++, wake(signal)) },
    dial: async (...asked) => (counts.dials++, dial ? dial(...asked) : dialLoopback(service.port)),
    ...{ traffic: new Map(), teams, protocols: new KnownProtocols(), turns: new Http2Turns() },
  };
  const usual = {
    ...{ credentials: { traffic: undefined, access: undefined }, repeatable: true, fresh: false, isProbe: false },
    ...{ isTunnel: false, protocol: 'http/1.1' as const, hasBody: false, signal: new AbortController().signal },
  };
  const asks = async (found: Route | undefined, more: Partial<Parameters<typeof connect>[3]> = {}, port = 8080) => {
    const connected = await connect(way, { sandboxId: 's', port }, found, { ...usual, ...more });
    if ('upstream' in connected) undo.push(() => connected.upstream.terminate());
    return connected;
  };
  const traffic = trafficOf(way, route());
  return { way, counts, asks, traffic, inFlight: () => teams.inFlight };
}

/** The text of an answer, or that it is a connection. */
const textOf = (got: Connected | Answer) => ('upstream' in got ? 'connected' : `${got.status} ${got.body?.message}`);
const notFound = '502 The sandbox was not found';

test('a sandbox that is not there, or is paused and not to be woken, is not found', async () => {
  const { asks, counts } = scene();
  expect(textOf(await asks(undefined))).toBe(notFound);
  for (const [found, more] of [
    [route('paused'), {}],
    [route('pausing'), {}],
    [route('paused', { autoResume: true }), { isProbe: true }],
  ] as const) {
    const answer = await asks(found, more);
    expect([textOf(answer), 'about' in answer && answer.about]).toEqual([notFound, 'paused']);
  }
  expect(counts).toEqual({ dials: 0, wakes: 0 });
});

test('a sandbox that may resume by itself is woken for who may use it, and one that moves is waited for', async () => {
  for (const [found, more] of [
    [route('paused', { autoResume: true }), {}],
    [route('moving'), {}],
    [route('moving'), { isProbe: true }],
  ] as const) {
    const { asks, counts, inFlight } = scene();
    expect(textOf(await asks(found, more))).toBe('connected');
    expect([counts, inFlight()]).toEqual([{ dials: 1, wakes: 1 }, 1]);
  }
  const { asks, counts } = scene();
  const closed = { autoResume: true, trafficAccessToken: 'a', accessToken: 'b' };
  const tokens = { credentials: { traffic: 'a', access: undefined } };
  expect(textOf(await asks(route('paused', closed)))).toContain('403 The header e2b-traffic-access-token is missing');
  expect(textOf(await asks(route('paused', closed), { ...tokens, isTunnel: true }))).toContain(
    '403 The header X-Access',
  );
  expect(counts.wakes).toBe(0);
  expect(textOf(await asks(route('paused', closed), tokens))).toBe('connected');
});

test('a request that waits for a wake counts for its team until the wait is over', async () => {
  const woken = Promise.withResolvers<Route>();
  const { asks, inFlight } = scene({ limits: { requestsPerTeamMax: 1 }, wake: () => woken.promise });
  const first = asks(route('paused', { autoResume: true }));
  await Bun.sleep(0);
  expect(inFlight()).toBe(1);
  const second = await asks(route('paused', { autoResume: true }));
  expect(textOf(second)).toBe('429 The sandboxes of this team have their limit of 1 connections open');
  woken.reject(new AtollError('rate_limited', 'too many run'));
  await expect(first).rejects.toMatchObject({ code: 'rate_limited' });
  expect(inFlight()).toBe(0);
});

test('a wake that takes too long is a sandbox that changes its state', async () => {
  const { asks, inFlight } = scene({ limits: { wakeTimeoutMs: 5 }, wake: () => new Promise(() => {}) });
  const waiting = asks(route('paused', { autoResume: true }));
  await expect(waiting).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('changing its state'),
  });
  const stop = new AbortController();
  const canceled = asks(route('paused', { autoResume: true }), { signal: stop.signal });
  stop.abort();
  await expect(canceled).rejects.toMatchObject({ code: 'canceled' });
  expect(inFlight()).toBe(0);
});

test('a request joins the traffic as far as there is room', async () => {
  for (const [limits, text] of [
    [{ connectionsPerSandboxMax: 1 }, '429 The sandbox has its limit of 1 connections open'],
    [{ requestsPerTeamMax: 1 }, '429 The sandboxes of this team have their limit of 1 connections open'],
    [{ sandboxRequestsMax: 1 }, '503 There are too many requests under way; try again in a moment'],
  ] as const) {
    const { asks } = scene({ limits });
    const first = await asks(route());
    expect([textOf(first), textOf(await asks(route()))]).toEqual(['connected', text]);
    giveUp(first as Connected);
    expect(textOf(await asks(route()))).toBe('connected');
  }
  const { asks, counts } = scene();
  expect(textOf(await asks(route('running', { trafficAccessToken: 'a' })))).toContain('403');
  expect(textOf(await asks(route('running', { accessToken: 'a' }), { isTunnel: true }))).toContain('403');
  expect(textOf(await asks(route('running', { accessToken: 'a' })))).toBe('connected');
  expect(counts.dials).toBe(1);
});

test('a request that is given up leaves no connection and no place', async () => {
  const { asks, traffic, inFlight } = scene();
  const connected = (await asks(route())) as Connected;
  expect([traffic.connections, inFlight()]).toEqual([1, 1]);
  giveUp(connected);
  while (traffic.connections > 0) await Bun.sleep(1);
  expect(inFlight()).toBe(0);
});

test('what the dial says of itself is told of the port or the sandbox, and gives the place back', async () => {
  for (const [error, text] of [
    [new AtollError('not_found', 'gone'), notFound],
    [new AtollError('unavailable', 'nothing listens'), '502 The sandbox is running but port is not open'],
  ] as const) {
    const { asks, inFlight } = scene({ dial: () => Promise.reject(error) });
    expect([textOf(await asks(route())), textOf(await asks(route(), { isTunnel: true })), inFlight()]).toEqual([
      text,
      text,
      0,
    ]);
  }
  for (const error of [lost('node', 'is not there'), new AtollError('internal', 'broken')]) {
    const { asks, inFlight } = scene({ dial: () => Promise.reject(error) });
    await expect(asks(route())).rejects.toBe(error);
    expect(inFlight()).toBe(0);
  }
  const { asks, traffic } = scene({ dial: () => new Promise(() => {}) });
  const cut = asks(route());
  await Bun.sleep(0);
  traffic.cut();
  expect(textOf(await cut)).toBe(notFound);
});

test('an idle connection is taken by who may, and is one less', async () => {
  const { asks, traffic, counts, way, inFlight } = scene();
  const first = (await asks(route())) as Connected;
  const keep = () => traffic.poolOf(8080).give(first.upstream, way.clock.nowMs);
  keep();
  expect([((await asks(route())) as Connected).upstream, counts.dials, inFlight()]).toEqual([first.upstream, 1, 2]);
  keep();
  // Not with a connection on which an answer said that it closes.
  const fresh = (await asks(route(), { fresh: true })) as Connected;
  expect([fresh.upstream === first.upstream, counts.dials]).toEqual([false, 2]);
});

test('how old an idle connection may be depends on its server and on the request', async () => {
  const { asks, traffic, way } = scene();
  const { limits } = way;
  for (const [port, repeatable, maxMs] of [
    [agentPort, false, limits.idleOwnUpstreamTimeoutMs],
    [8080, true, limits.idleUpstreamTimeoutMs],
    [8080, false, limits.freshUpstreamMs],
  ] as const) {
    const { upstream } = (await asks(route(), { fresh: true }, port)) as Connected;
    const pool = traffic.poolOf(port);
    const idleFor = (ms: number) => {
      pool.give(upstream, 0);
      const taken = takeIdle({ limits, clock: { nowMs: ms } }, traffic, port, { repeatable, protocol: undefined });
      if (!taken) pool.take(0, 1);
      return taken === upstream;
    };
    expect([maxMs, idleFor(maxMs), idleFor(maxMs + 1)]).toEqual([maxMs, true, false]);
  }
});

test.each<[string, Error, string]>([
  ['not_found', new AtollError('not_found', 'no'), notFound],
  ['canceled', new AtollError('canceled', 'no'), notFound],
  ['forbidden', new AtollError('forbidden', 'not you'), '403 not you'],
  ['conflict', new AtollError('conflict', 'later'), '409 later'],
  ['rate_limited', new AtollError('rate_limited', 'slower'), '429 slower'],
  [
    'deadline_exceeded',
    new AtollError('deadline_exceeded', 'late'),
    '504 The sandbox took too long to answer the connection',
  ],
  ['invalid', new AtollError('invalid', 'no HTTP'), '503 no HTTP'],
  [
    'unavailable',
    new AtollError('unavailable', 'secret'),
    '503 The sandbox could not be reached; try again in a moment',
  ],
  ['none', new Error('secret'), '503 The sandbox could not be reached; try again in a moment'],
])('trouble is told so that nothing of the platform’s shows: %s', (_, error, text) => {
  const logged: string[] = [];
  const log = createLog('warn', line => void logged.push(line));
  expect(textOf(answerToTrouble(log, { sandboxId: 's', port: 80 }, error))).toBe(text);
  expect(logged.length).toBe(text.includes('could not be reached') ? 1 : 0);
});

test('where there is no room to wake a sandbox, it is said when there may be', () => {
  for (const detail of [nodeFull, 'disk_reserve']) {
    const error = new AtollError('unavailable', 'full', { detail, retryAfterSeconds: 7 });
    const answer = answerToTrouble(silentLog, { sandboxId: 's', port: 80 }, error);
    expect([answer.status, answer.about, answer.headers['Retry-After']]).toEqual([503, 'full', '7']);
  }
});
