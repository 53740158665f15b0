import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { isInternalRoute } from '../../src/edge/request/internal-routes.ts';
import { get, host, startBoth } from '../edge/support/both-ends.ts';
import { type Fixture, startFixture } from '../edge/support/fixture.ts';
import { RawSocket } from '../edge/support/raw-socket.ts';
import { documentedRefusals } from './support/documented-refusals.ts';
import { requestsFound } from './support/framing.ts';
import { type Llhttp, startLlhttp } from './support/llhttp.ts';
import { rawRequests } from './support/raw-requests.ts';
import { type Attack, attackWall } from './support/wall.ts';

setDefaultTimeout(30_000);

let llhttp: Llhttp;
let before: Fixture;
beforeAll(async () => {
  llhttp = await startLlhttp();
  before = startFixture();
  before.sandbox('one');
  before.mapPort(80, llhttp.port);
});
afterAll(async () => {
  await before[Symbol.asyncDispose]();
  await llhttp[Symbol.asyncDispose]();
});

/**
 * Sent to Node.js itself and through the edge: either both find the same requests, or the edge refuses and says why.
 */
const framing: Attack[] = rawRequests.map(([name, bytes]) => [
  `${name} is framed as Node.js frames it, or refused`,
  async () => {
    const direct = await requestsFound(llhttp, llhttp.port, bytes);
    const through = await requestsFound(llhttp, before.port, bytes);
    const reason = documentedRefusals[name];
    if (reason === undefined) return void expect({ name, whole: through.whole }).toEqual({ name, whole: direct.whole });
    // A refusal that no longer occurs must be removed from the table.
    expect({ name, whole: through.whole }).not.toEqual({ name, whole: direct.whole });
    expect(direct.whole.slice(0, through.whole.length)).toEqual(through.whole);
    expect(through.answers.at(-1)).toMatch(/^(?:400|431|501|505)$/);
  },
]);

const internalSpellings = [
  '/init',
  '//init',
  '/INIT',
  '/./init',
  '/x/../init',
  '/%69nit',
  '/%2569nit',
  '/%252569nit',
  '/init/',
  '/init?a',
  '/init%00',
  '/init;a',
  '/x%2f..%2finit',
  '/x%5c..%5cinit',
  '\\init',
  '/freeze',
  '/unfreeze',
  '/collapse',
  '/fsfreeze',
  '/fsthaw',
  '/upgrade',
];
const internal: Attack[] = internalSpellings.map(path => [
  `the agent's own route, spelled ${path}`,
  async () => {
    await using both = await startBoth();
    expect(isInternalRoute(path)).toBe(true);
    both.client.send(
      `POST ${path.startsWith('/') ? path : `http://49983-one.localhost/${path}`} HTTP/1.1\r\nHost: 49983-one.localhost\r\n\r\n`,
    );
    await both.client.expect('HTTP/1.1 404 ');
    expect(both.server.connections).toEqual([]);
  },
]);

/** Claims of a client that only the edge or the platform may make. */
const forged = [
  'X-Forwarded-For: 127.0.0.1',
  'X-Forwarded-Proto: https',
  'X-Forwarded-Host: elsewhere',
  'X-Forwarded-Port: 1',
  'X-Forwarded-Server: a',
  'X-Real-Ip: 127.0.0.1',
  'Forwarded: for=127.0.0.1',
  'x-forwarded-FOR: 127.0.0.1',
  'X-Atoll-Control: forged',
  'x-atoll-token: forged',
  'X-ATOLL-anything: forged',
  'E2b-Sandbox-Id: one',
  'Svc-Sandbox-Id: one',
  'E2b-Traffic-Access-Token: forged',
  'Keep-Alive: timeout=9',
  'Proxy-Connection: forged',
  'TE: trailers',
  'HTTP2-Settings: forged',
  'Upgrade: forged',
];
const forgery: Attack[] = forged.map(field => [
  `the sandbox is told ${field}`,
  async () => {
    await using both = await startBoth();
    both.client.send(`GET / HTTP/1.1\r\n${host}${field}\r\n\r\n`);
    const head = await (await both.server.accept()).expect('\r\n\r\n');
    const sent = head.split('\r\n').filter(line => line.toLowerCase() === field.toLowerCase());
    // The edge's own statement of the client's address may be the same.
    expect(sent.length).toBeLessThanOrEqual(field.toLowerCase() === 'x-forwarded-for: 127.0.0.1' ? 1 : 0);
    expect(head.toLowerCase()).not.toContain('forged');
  },
]);

/** Fields that must not be removable by naming them in Connection. */
const nominated: Attack[] = [
  'Host',
  'Content-Length',
  'Transfer-Encoding',
  'Expect',
  'X-Forwarded-For',
  'X-Forwarded-Proto',
].map(name => [
  `the client strips ${name} by naming it in Connection`,
  async () => {
    await using both = await startBoth();
    both.client.send(`POST / HTTP/1.1\r\n${host}Connection: ${name}\r\nContent-Length: 3\r\n\r\nabc`);
    const head = (await (await both.server.accept()).expect('abc')).toLowerCase();
    expect(head).toContain('content-length: 3');
    expect(head).toContain('host: 80-one.localhost');
    expect(head).toContain('x-forwarded-for: 127.0.0.1');
    expect(head).toContain('x-forwarded-proto: http');
  },
]);

/** Answers of a sandbox meant to pass its bytes off as somebody else's answer, or to take the edge down. */
const answers: Record<string, string> = {
  'a length and chunks': 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n',
  'two lengths that agree': 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n',
  'a length in a list': 'HTTP/1.1 200 OK\r\nContent-Length: 0, 0\r\n\r\n',
  'a length with a sign': 'HTTP/1.1 200 OK\r\nContent-Length: +0\r\n\r\n',
  'a length below zero': 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n',
  'a length beyond 53 bits': 'HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999\r\n\r\n',
  'an unknown encoding': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: cow\r\n\r\n',
  'an encoding in a list': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
  'chunks in HTTP/1.0': 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'a bare line feed': 'HTTP/1.1 200 OK\nContent-Length: 0\n\n',
  'a bare carriage return': 'HTTP/1.1 200 OK\rContent-Length: 0\r\r',
  'a folded field': 'HTTP/1.1 200 OK\r\nX: y\r\n z\r\nContent-Length: 0\r\n\r\n',
  'a space before a colon': 'HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n',
  'a NUL in a field': 'HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n',
  'a field without name': 'HTTP/1.1 200 OK\r\n: y\r\nContent-Length: 0\r\n\r\n',
  'no protocol': 'hello\r\n\r\n',
  'another protocol': 'SSH-2.0-OpenSSH_9.2\r\n',
  'HTTP/2.0': 'HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n',
  'a status of two digits': 'HTTP/1.1 99 No\r\nContent-Length: 0\r\n\r\n',
  'a status of four digits': 'HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n',
  'a status that is no number': 'HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n',
  'a status of 000': 'HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n',
  'a switch of protocols that nobody asked for':
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
  'interim responses without end': 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(40),
  'a head of 140 KiB': `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(140 * 1024)}\r\n\r\n`,
  'a head without end': `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(200 * 1024)}`,
  'a head of 129 fields': `HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(129)}\r\n`,
};
const hostile: Attack[] = Object.entries(answers).map(([name, response]) => [
  `a sandbox answers with ${name}`,
  async () => {
    await using both = await startBoth();
    both.client.send(get);
    const upstream = await both.server.accept();
    await upstream.expect('\r\n\r\n');
    upstream.send(response);
    await both.client.until(client => client.received.includes('"code":503') || client.end === 'reset').catch(() => {});
    expect(await upstream.over()).toBe('reset');
    expect(both.client.received).not.toMatch(/HTTP\/1\.1 (?:2|101)/);
  },
]);

/** Bytes beyond an answer: the next requester, on whatever connection, must not get them. */
const beyond: Record<string, string> = {
  'a whole answer behind a length': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'a whole answer behind chunks': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'a whole answer behind trailers': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n',
  'a whole answer behind no content': 'HTTP/1.1 204 No Content\r\nX: ok\r\n\r\n',
  'a whole answer behind a 304': 'HTTP/1.1 304 Not Modified\r\nX: ok\r\n\r\n',
};
const poison = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison';
const poisoning: Attack[] = Object.entries(beyond).flatMap(([name, response]): Attack[] =>
  [true, false].map(atOnce => [
    `a sandbox sends ${name}, ${atOnce ? 'at once' : 'when the connection is kept'}`,
    async () => {
      await using both = await startBoth();
      both.client.send(get);
      const first = await both.server.accept();
      await first.expect('\r\n\r\n');
      first.send(atOnce ? response + poison : response);
      await both.client.expect('ok');
      if (!atOnce) first.send(poison);
      await first.until(server => server.ended).catch(() => {});
      const other = await RawSocket.connect(both.fixture.port);
      other.send(get);
      const second = await both.server.accept();
      await second.expect('\r\n\r\n');
      second.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nclean');
      expect(await other.expect('clean')).not.toContain('poison');
      other.close();
    },
  ]),
);

/** Request trailers that a server could take for a request of its own. */
const trailers: Attack[] = ['X: y', 'X-Long: ' + 'y'.repeat(9000), 'Cookie: a=b', 'Authorization: x'].map(trailer => [
  `a request with the trailer ${trailer.slice(0, 12)} leaves something for the next one`,
  async () => {
    await using both = await startBoth();
    both.client.send(`POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n${trailer}\r\n\r\n`);
    const first = await both.server.accept();
    await first.expect('\r\n\r\n');
    first.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    await both.client.expect('ok');
    await first.until(server => server.ended);
    first.send(poison);
    both.client.send(get);
    const second = await both.server.accept();
    await second.expect('\r\n\r\n');
    second.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nclean');
    expect(await both.client.expect('clean')).not.toContain('poison');
  },
]);

/** Into a sandbox whose traffic is not public. */
const token = 'a'.repeat(64);
const guesses: Record<string, string> = {
  'no token': '',
  'an empty token': 'E2b-Traffic-Access-Token:\r\n',
  'a wrong token': `E2b-Traffic-Access-Token: ${'b'.repeat(64)}\r\n`,
  'the beginning of the token': `E2b-Traffic-Access-Token: ${token.slice(0, 63)}\r\n`,
  'the token and more': `E2b-Traffic-Access-Token: ${token}a\r\n`,
  'the token in capitals': `E2b-Traffic-Access-Token: ${token.toUpperCase()}\r\n`,
  'a wrong token, then the right one': `E2b-Traffic-Access-Token: x\r\nE2b-Traffic-Access-Token: ${token}\r\n`,
  'the token in the query': '',
  'the token as a bearer': `Authorization: Bearer ${token}\r\n`,
  'the token as a cookie': `Cookie: e2b-traffic-access-token=${token}\r\n`,
  'the token in a name with an underscore': `E2b_Traffic_Access_Token: ${token}\r\n`,
  'the token of the agent': `X-Access-Token: ${token}\r\n`,
};
const closed: Attack[] = Object.entries(guesses).map(([name, fields]) => [
  `a closed sandbox is entered with ${name}`,
  async () => {
    await using both = await startBoth();
    both.fixture.sandbox('one', { ingress: { trafficAccessToken: token } });
    both.client.send(`GET /?e2b-traffic-access-token=${token} HTTP/1.1\r\n${host}${fields}\r\n`);
    await both.client.expect('HTTP/1.1 403 ');
    expect(both.server.connections).toEqual([]);
  },
]);

/** Heads that name a sandbox in two ways, or none. */
const routes: Record<string, [string, RegExp]> = {
  'an ID with a dot': ['Host: localhost\r\nE2b-Sandbox-Id: on.e\r\nE2b-Sandbox-Port: 80\r\n', / 400 /],
  'an ID with a slash': ['Host: localhost\r\nE2b-Sandbox-Id: ../one\r\nE2b-Sandbox-Port: 80\r\n', / 400 /],
  'an ID in capitals by header': ['Host: localhost\r\nE2b-Sandbox-Id: ONE\r\nE2b-Sandbox-Port: 80\r\n', / 400 /],
  'two IDs': ['Host: localhost\r\nE2b-Sandbox-Id: one\r\nE2b-Sandbox-Id: two\r\nE2b-Sandbox-Port: 80\r\n', / 400 /],
  'two families that differ': [
    'Host: localhost\r\nE2b-Sandbox-Id: one\r\nSvc-Sandbox-Id: two\r\nE2b-Sandbox-Port: 80\r\n',
    / 400 /,
  ],
  'two ports': ['Host: localhost\r\nE2b-Sandbox-Id: one\r\nE2b-Sandbox-Port: 80\r\nE2b-Sandbox-Port: 81\r\n', / 400 /],
  'port 0': ['Host: 0-one.localhost\r\n', / 400 /],
  'port 65536': ['Host: 65536-one.localhost\r\n', / 400 /],
  'port 00080 and a sixth digit': ['Host: 000080-one.localhost\r\n', / 400 /],
  'a host without domain': ['Host: 80-one\r\n', / 400 /],
  'a host of two labels of numbers': ['Host: 80-81-one.localhost\r\n', / 502 /],
  'a foreign sandbox that is not there': ['Host: 80-two.localhost\r\n', / 502 /],
  'a host of 600 characters': [`Host: 80-one.${'a'.repeat(600)}\r\n`, / 400 /],
};
const routing: Attack[] = Object.entries(routes).map(([name, [fields, status]]) => [
  `a request is routed by ${name}`,
  async () => {
    await using both = await startBoth();
    both.client.send(`GET / HTTP/1.1\r\n${fields}\r\n`);
    await both.client.until(client => client.received.includes('}'));
    expect(both.client.received.split('\r\n')[0]).toMatch(status);
    expect(both.server.connections).toEqual([]);
  },
]);

attackWall({ name: 'edge', atLeast: 250 }, [
  ...framing,
  ...internal,
  ...forgery,
  ...nominated,
  ...hostile,
  ...poisoning,
  ...trailers,
  ...closed,
  ...routing,
]);
