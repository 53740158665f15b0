import { describe, expect, test } from 'bun:test';
import { Share } from '../../base/concurrency/share.ts';
import { silentLog } from '../../base/telemetry/log.ts';
import { RequestHead } from '../../http1/request-head.ts';
import { ResponseHead } from '../../http1/response-head.ts';
import type { Route } from '../../protocol/directory.ts';
import { ClientConnection, type Serve } from '../connection/client-connection.ts';
import type { ConnectionContext } from '../context.ts';
import { LargeHeads } from '../clients/large-heads.ts';
import { WaitingBytes } from '../waiting-bytes.ts';
import { Http2Turns } from '../http2-turns.ts';
import { limitsWithin } from '../limits.ts';
import type { ByteSocket } from '../send-buffer.ts';
import { KnownProtocols } from '../upstream/known-protocols.ts';
import { SandboxTraffic } from '../upstream/sandbox-traffic.ts';
import { Teams } from '../upstream/team-traffic.ts';
import { Upstream } from '../upstream/upstream.ts';
import { Exchange } from './exchange.ts';

// An exchange and its client's connection: each state combined with each event that may happen in it, over sockets in
// memory. `test/edge` tests the same on real sockets.

/** Takes as many bytes as it has room for, and records what was done with it. */
class MemorySocket implements ByteSocket {
  readonly remoteAddress = '192.0.2.9';
  bytesWritten = 0;
  sent = '';
  room = Number.POSITIVE_INFINITY;
  paused = false;
  /** The last call that ended it, or empty. */
  end: '' | 'shutdown' | 'close' | 'terminate' = '';

  write(bytes: Uint8Array, start = 0, length = bytes.length - start): number {
    if (this.end !== '') return -1;
    const taken = Math.min(length, this.room);
    this.room -= taken;
    this.bytesWritten += taken;
    this.sent += Buffer.from(bytes.subarray(start, start + taken)).toString('latin1');
    return taken;
  }
  pause = () => void (this.paused = true);
  resume = () => void (this.paused = false);
  shutdown = () => void (this.end ||= 'shutdown');
  close = () => void (this.end = 'close');
  terminate = () => void (this.end = 'terminate');
}

const limits = limitsWithin(1000);
const route = {
  ...{ sandboxId: 's', teamId: 't', executionId: 'e', nodeId: 'n', state: 'running' },
  ingress: {
    ...{ trafficAccessToken: null, accessToken: null, maskRequestHost: null, autoResume: false },
    httpsPorts: [],
  },
} satisfies Route;

/** A client whose requests go to one sandbox over one open connection. */
function scene({ served = 0, upgrade = false } = {}) {
  const [near, far] = [new MemorySocket(), new MemorySocket()];
  const context: ConnectionContext = {
    ...{ limits, log: silentLog, trustForwardedHeaders: false, clock: { nowMs: 0 } },
    requestHead: new RequestHead(limits.headerLinesMax),
    ...{ turns: new Http2Turns(), largeHeads: new LargeHeads(limits), waiting: new WaitingBytes(9e9) },
    responseHead: new ResponseHead(limits.headerLinesMax),
    scratch: Buffer.allocUnsafe(2 * (limits.requestHeadBytesMax + limits.responseHeadBytesMax)),
    ...{ clients: new Set(), stopping: false },
  };
  const team = new Teams(limits).of('t');
  const traffic = new SandboxTraffic({ sandboxId: 's', executionId: 'e' }, limits, team, new KnownProtocols());
  let running = true;
  const directory = {
    find: () => (running ? route : undefined),
    running: () => [route],
    wake: () => Promise.reject(new Error('nothing sleeps here')),
  };
  let [given, retried] = [0, 0];
  const home = { add() {}, forget() {}, give: () => void given++ };
  const upstream = new Upstream(home);
  upstream.served = served;
  upstream.opened(far);
  const place = traffic.requests;
  const target = { traffic, directory, place, port: 80, plan: { host: null, upgrade } };
  const serve: Serve = (client, head) => {
    place.take();
    new Exchange(client, { ...target, isForeign: false, isInert: false }, upstream, head, () => void retried++).begin(
      head,
    );
  };
  const origin = {
    network: '192.0.2.9',
    connections: new Share('address', 9, null),
    apiRequests: new Share('address', 9, null),
  };
  const client = new ClientConnection(context, near, false, serve, origin, null);
  return {
    ...{ client, upstream, near, far, place, context },
    send: (text: string) => client.received(Buffer.from(text, 'latin1')),
    answer: (text: string) => upstream.user?.upstreamData(Buffer.from(text, 'latin1')),
    /** The server closes its sending side. */
    serverEnds() {
      upstream.ended = true;
      upstream.user?.upstreamEnded();
    },
    /** The sandbox no longer runs. */
    sandboxEnds: () => void (running = false),
    given: () => given,
    retried: () => retried,
  };
}
type Scene = ReturnType<typeof scene>;

const upgrade = 'Connection: Upgrade\r\nUpgrade: thing\r\n\r\n';
const get = 'GET /a HTTP/1.1\r\nHost: x\r\n\r\n';
const post = 'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n';
const statusOf = ({ near }: Scene) => /^HTTP\/1\.1 (\d+)/.exec(near.sent)?.[1] ?? '';

/** How to get an exchange into each of its states. */
const states: Record<string, (options?: { served?: number }) => Scene> = {
  awaiting(options) {
    const at = scene(options);
    at.send(get);
    return at;
  },
  'awaiting, after an interim response'() {
    const at = scene();
    at.send(get);
    at.answer('HTTP/1.1 103 Early Hints\r\n\r\n');
    return at;
  },
  responding() {
    const at = scene();
    at.send(get);
    at.answer('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab');
    return at;
  },
  'responding until its end'() {
    const at = scene();
    at.send(get);
    at.answer('HTTP/1.1 200 OK\r\n\r\nab');
    return at;
  },
  answered() {
    const at = scene();
    at.send(`${post}ab`);
    at.answer('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    return at;
  },
  over() {
    const at = scene();
    at.send(get);
    at.answer('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    return at;
  },
};

/** What an event does to each state: the client's status, and how each connection ends. */
type Outcome = { status: string; near: MemorySocket['end']; far: MemorySocket['end'] };
const untouched = (status: string): Outcome => ({ status, near: '', far: '' });
const cutOff = (status: string): Outcome => ({ status, near: 'terminate', far: 'terminate' });

const events: Record<string, { run(at: Scene): unknown; makes: Record<string, Outcome> }> = {
  'the server ends': {
    run: at => at.serverEnds(),
    makes: {
      // A client that has seen nothing of an answer is told; one that has seen a part must not take it for the whole.
      awaiting: { status: '503', near: '', far: 'terminate' },
      'awaiting, after an interim response': cutOff('103'),
      responding: cutOff('200'),
      'responding until its end': { status: '200', near: 'shutdown', far: 'close' },
      answered: { status: '200', near: '', far: 'terminate' },
      over: untouched('200'),
    },
  },
  'the connection to the server breaks': {
    run: at => at.upstream.wasClosed(new Error('reset')),
    makes: {
      awaiting: { status: '503', near: '', far: '' },
      'awaiting, after an interim response': { status: '103', near: 'terminate', far: '' },
      responding: { status: '200', near: 'terminate', far: '' },
      'responding until its end': { status: '200', near: 'terminate', far: '' },
      answered: untouched('200'),
      over: untouched('200'),
    },
  },
  'the sandbox is cut': {
    run: at => at.upstream.user?.cut(),
    makes: {
      awaiting: { status: '502', near: '', far: 'terminate' },
      'awaiting, after an interim response': cutOff('103'),
      responding: cutOff('200'),
      'responding until its end': cutOff('200'),
      answered: cutOff('200'),
      over: untouched('200'),
    },
  },
  'the client goes': {
    run: at => at.client.wasClosed(undefined),
    makes: Object.fromEntries(
      Object.entries({
        ...{ awaiting: '', 'awaiting, after an interim response': '103', responding: '200' },
        ...{ 'responding until its end': '200', answered: '200' },
      })
        .map(([state, status]): [string, Outcome] => [state, { status, near: '', far: 'terminate' }])
        .concat([['over', untouched('200')]]),
    ),
  },
  'the server speaks no HTTP': {
    run: at => at.answer('nonsense\r\n\r\n'),
    makes: {
      awaiting: { status: '503', near: '', far: 'terminate' },
      'awaiting, after an interim response': cutOff('103'),
      // The body is whole at its second byte; what follows belongs to nobody.
      responding: { status: '200', near: '', far: 'close' },
      'responding until its end': untouched('200'),
      answered: untouched('200'),
      over: untouched('200'),
    },
  },
};

describe('each state of an exchange, with each thing that may happen in it', () => {
  for (const [event, { run, makes }] of Object.entries(events))
    test(event, () => {
      expect(Object.keys(makes)).toEqual(Object.keys(states));
      for (const [state, enter] of Object.entries(states)) {
        const at = enter();
        run(at);
        const outcome = { status: statusOf(at), near: at.near.end, far: at.far.end };
        expect({ state, ...outcome }).toEqual({ state, ...(makes[state] as Outcome) });
        const goesOn = at.upstream.user !== null;
        expect({ state, taken: at.place.taken }).toEqual({ state, taken: goesOn ? 1 : 0 });
      }
    });
});

test('a response that ends with its connection is whole only where its sandbox goes on', () => {
  const at = states['responding until its end']?.() as Scene;
  at.sandboxEnds();
  at.serverEnds();
  expect(at.near.end).toBe('terminate');
});

test('a request that may be repeated is, where a connection that had served others gives no byte of an answer', () => {
  for (const [served, retried, status] of [
    [1, 1, ''],
    [0, 0, '503'],
  ] as const) {
    const at = states['awaiting']?.({ served }) as Scene;
    at.serverEnds();
    expect([at.retried(), statusOf(at)]).toEqual([retried, status]);
  }
  const posted = scene({ served: 1 });
  posted.send(`${post}abcd`);
  posted.serverEnds();
  expect([posted.retried(), statusOf(posted)]).toEqual([0, '503']);
});

test('a connection serves the next request only when both directions are over, and while its server says so', () => {
  const at = states['answered']?.() as Scene;
  expect([at.given(), at.place.taken]).toEqual([0, 1]);
  at.send('cd');
  expect([at.given(), at.place.taken, at.far.sent.endsWith('abcd')]).toEqual([1, 0, true]);
  const kept = scene();
  kept.send(get);
  kept.answer('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\n\r\nok');
  // The server starts counting a little earlier than we do.
  expect([at.upstream.keepMs, kept.upstream.keepMs]).toEqual([Number.POSITIVE_INFINITY, 4000]);
});

test('a client that does not read makes the server wait until it does', () => {
  const at = scene();
  at.send(get);
  at.answer('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nab');
  at.near.room = 1;
  at.answer('cd');
  expect([at.far.paused, at.near.sent.endsWith('abc')]).toEqual([true, true]);
  at.near.room = Number.POSITIVE_INFINITY;
  at.client.drained();
  at.answer('ef');
  expect([at.far.paused, at.near.sent.endsWith('abcdef'), at.given()]).toEqual([false, true, 1]);
});

test('what waits for a service that has ended its side reaches it behind the orderly end of its client', () => {
  const at = scene({ upgrade: true });
  at.send(`GET /a HTTP/1.1\r\nHost: x\r\n${upgrade}`);
  at.answer(`HTTP/1.1 101 Switching Protocols\r\n${upgrade}`);
  at.far.room = 2;
  at.send('abcd');
  at.serverEnds();
  at.client.wasClosed(undefined);
  expect([at.far.sent.endsWith('ab'), at.far.end, at.place.taken]).toEqual([true, '', 0]);
  at.far.room = Number.POSITIVE_INFINITY;
  at.upstream.sendBuffer.flush();
  at.upstream.user?.upstreamDrained();
  expect([at.far.sent.endsWith('abcd'), at.far.end]).toEqual([true, 'close']);
  at.upstream.wasClosed(undefined);
});

describe('a connection of a client', () => {
  test('what takes too long is answered or ended by what it was doing', () => {
    const expired = (enter: (at: Scene) => void) => {
      const at = scene();
      enter(at);
      at.client.expired();
      return [statusOf(at), at.near.end];
    };
    expect(expired(() => {})).toEqual(['', 'shutdown']);
    expect(expired(at => at.send('GET / HT'))).toEqual(['408', 'shutdown']);
    expect(expired(at => at.client.beginRouting())).toEqual(['', 'terminate']);
    expect(expired(at => at.send(get))).toEqual(['', 'terminate']);
    expect(expired(at => (at.send(`${post}a`), at.serverEnds()))).toEqual(['503', 'shutdown']);
    expect(expired(at => at.client.close())).toEqual(['', 'close']);
  });

  test('a client that closes its sending side still gets the answer; between requests the connection ends', () => {
    const asked = scene();
    asked.send(get);
    asked.client.halfClosed();
    asked.answer('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    expect([statusOf(asked), asked.near.end]).toEqual(['200', 'close']);
    const quiet = scene();
    quiet.client.halfClosed();
    expect(quiet.near.end).toBe('close');
    const switching = scene({ upgrade: true });
    switching.send(`GET /a HTTP/1.1\r\nHost: x\r\n${upgrade}`);
    switching.client.halfClosed();
    switching.answer(`HTTP/1.1 101 Switching Protocols\r\n${upgrade}`);
    expect(switching.far.end).toBe('shutdown');
    // The server learns that a request's body will never be whole.
    const broken = scene();
    broken.send(`${post}a`);
    broken.client.halfClosed();
    expect(broken.near.end).toBe('terminate');
  });

  test('a client that goes while its server is found stops the search', () => {
    const at = scene();
    const signal = at.client.beginRouting();
    at.client.wasClosed(undefined);
    expect([signal.aborted, at.client.isRouting]).toEqual([true, false]);
  });

  test('requests that come at once are answered one after the other', () => {
    const at = scene();
    at.send(`${get}GET /b HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect([at.far.sent.includes('/a '), at.far.sent.includes('/b ')]).toEqual([true, false]);
    at.answer('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    expect(at.far.sent.includes('/b ')).toBe(true);
  });

  test('a request that comes with the end of one that was answered before does not wait for more bytes', () => {
    const at = states['answered']?.() as Scene;
    at.send('cdGET /b HTTP/1.1\r\nHost: x\r\n\r\n');
    expect([at.far.sent.includes('abcdGET /b '), at.given(), at.place.taken]).toEqual([true, 1, 1]);
  });

  test('no request follows the last one of an edge that stops', () => {
    const at = scene();
    at.send(get);
    at.context.stopping = true;
    at.answer('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    expect([at.near.sent.toLowerCase().includes('connection: close'), at.near.end]).toEqual([true, 'shutdown']);
  });
});

test('whatever happens, in whatever order, a request gives its place back once', () => {
  let seen = 0;
  for (let seed = 1; seed <= 400; seed++) {
    let state = seed * 7919;
    const below = (bound: number) => (state = (state * 1_103_515_245 + 12_345) & 0x7fffffff) % bound;
    const at = scene({ served: below(2) });
    at.send([get, post, `${post}ab`, `${post}abcd`][below(4)] ?? get);
    const steps: (() => unknown)[] = [
      () => at.send('abcd'.slice(0, 1 + below(4))),
      () => at.answer('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n'),
      () => at.answer('HTTP/1.1 100 Continue\r\n\r\n'),
      () => at.answer('abcd'.slice(0, 1 + below(4))),
      () => at.serverEnds(),
      () => at.upstream.closed || at.upstream.wasClosed(below(2) === 0 ? undefined : new Error('reset')),
      () => at.upstream.user?.cut(),
      () => at.client.halfClosed(),
      () => at.client.drained(),
      () => void (at.near.room = below(2) === 0 ? 3 : Number.POSITIVE_INFINITY),
      () => at.client.expired(),
    ];
    for (let step = 0; step < 12; step++) {
      steps[below(steps.length)]?.();
      seen++;
      expect(at.place.taken).toBeWithin(0, 2);
      // Nobody listens any more to a connection that was given up.
      if (at.far.end === 'terminate') expect(at.upstream.user).toBeNull();
    }
    if (!at.upstream.closed) at.upstream.wasClosed(undefined);
    at.client.wasClosed(undefined);
    expect({ seed, taken: at.place.taken, user: at.upstream.user }).toEqual({ seed, taken: 0, user: null });
    expect('HTTP/1.1 ').toStartWith(at.near.sent.slice(0, 9));
  }
  expect(seen).toBe(4800);
});
