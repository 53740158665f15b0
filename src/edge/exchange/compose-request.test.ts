import { expect, test } from 'bun:test';
import { RequestHead } from '../../http1/request-head.ts';
import type { Client } from '../connection/client.ts';
import { composeRequest, hostOf, pathOf, type ForwardPlan } from './compose-request.ts';

const asIs: ForwardPlan = { host: null, upgrade: false };

function parsed(text: string): RequestHead {
  const head = new RequestHead(32);
  // Other bytes of the connection precede it.
  const bytes = Buffer.from(`before${text}`, 'latin1');
  expect(head.parse(bytes, 6, bytes.length)).toBe(bytes.length);
  return head;
}

/** The lines of the head as the upstream gets it. */
function forwarded(lines: string[], plan: ForwardPlan = asIs, { secure = false, trust = false } = {}): string[] {
  const client = {
    context: { trustForwardedHeaders: trust },
    secure,
    address: '192.0.2.7',
    forwardedLines: Buffer.from('X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: '),
  } as unknown as Client;
  const out = Buffer.alloc(4096, '?');
  const length = composeRequest(out, parsed([...lines, '', ''].join('\r\n')), client, plan);
  const text = out.toString('latin1', 0, length);
  expect(text.endsWith('\r\n\r\n')).toBe(true);
  return text.slice(0, -4).split('\r\n');
}
const added = (host: string) => ['X-Forwarded-For: 192.0.2.7', `X-Forwarded-Host: ${host}`];

test('a request passes as it was written, with who sent it', () => {
  const lines = ['GET /a?b HTTP/1.1', 'Host: x.example', 'ACCEPT:  a', 'X-Mine: 1', 'Accept: b'];
  expect(forwarded(lines)).toEqual([...lines, ...added('x.example')]);
});

test('what speaks of this connection, steers the edge or claims where it came from does not pass', () => {
  const kept = ['GET / HTTP/1.1', 'Host: x', 'A: 1', 'Z: 2'];
  const dropped = [
    ...['Connection: keep-alive', 'Keep-Alive: 5', 'Proxy-Connection: a', 'TE: trailers', 'HTTP2-Settings: a'],
    ...['Upgrade: websocket', 'E2B-Sandbox-Id: a', 'svc-sandbox-port: 1', 'e2b-traffic-access-token: a'],
    ...['X-Forwarded-For: 1.1.1.1', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: bank', 'X-Forwarded-Port: 1'],
    ...['X-Forwarded-Server: a', 'X-Real-IP: 1.1.1.1', 'Forwarded: for=1.1.1.1'],
  ];
  for (const line of dropped) {
    // First, in the middle and last: the lines around it stay whole.
    for (const at of [1, 3, 4]) {
      const lines = kept.toSpliced(at, 0, line);
      expect([line, forwarded(lines)]).toEqual([line, [...kept, ...added('x')]]);
    }
  }
});

test('fields that Connection names stay on this side, except those that decide about the message', () => {
  const lines = ['GET / HTTP/1.1', 'Host: x', 'Connection: close, X-Hop, Host', 'X-Hop: 1', 'X-Other: 2'];
  expect(forwarded(lines)).toEqual(['GET / HTTP/1.1', 'Host: x', 'X-Other: 2', ...added('x')]);
});

test('an upgrade passes only where it may, and is asked for anew', () => {
  const lines = ['GET / HTTP/1.1', 'Host: x', 'Connection: Upgrade', 'Upgrade: websocket'];
  expect(forwarded(lines, { host: null, upgrade: true })).toEqual([
    ...['GET / HTTP/1.1', 'Host: x', 'Upgrade: websocket', ...added('x'), 'Connection: Upgrade'],
  ]);
  expect(forwarded(lines)).toEqual(['GET / HTTP/1.1', 'Host: x', ...added('x')]);
});

test('the upstream of a client of HTTP/1.0 closes behind its answer', () => {
  const lines = ['GET / HTTP/1.0', 'Host: x'];
  expect(forwarded(lines)).toEqual([...lines, ...added('x'), 'Connection: close']);
  expect(forwarded(['GET / HTTP/1.0'])).toEqual(['GET / HTTP/1.0', ...added(''), 'Connection: close']);
});

test('the upstream sees another Host where the plan says so, and the client’s among the forwarded fields', () => {
  const lines = ['GET / HTTP/1.1', 'Host: outside', 'A: 1'];
  expect(forwarded(lines, { host: 'inside:80', upgrade: false })).toEqual([
    ...['GET / HTTP/1.1', 'A: 1', 'Host: inside:80', ...added('outside')],
  ]);
});

test.each([
  ['http://real:8080/a/b?c', 'real:8080', '/a/b?c', '/a/b?c'],
  ['http://user:pass@real/a', 'real', '/a', '/a'],
  ['http://real?c', 'real', '?c', '/?c'],
  ['http://real', 'real', '', '/'],
])('the authority of the absolute target %s counts, and not the Host field', (target, host, path, line) => {
  const lines = [`GET ${target} HTTP/1.1`, 'Host: other', 'A: 1'];
  expect(forwarded(lines)).toEqual([`GET ${line} HTTP/1.1`, 'A: 1', `Host: ${host}`, ...added(host)]);
  const head = parsed([...lines, '', ''].join('\r\n'));
  expect([hostOf(head), pathOf(head)]).toEqual([host, path]);
});

test('the Host field and the whole target count where the target is a path', () => {
  const head = parsed('GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n');
  expect([hostOf(head), pathOf(head)]).toEqual(['x', '/a?b']);
});

test('only the first line passes of each field with the given prefix', () => {
  const lines = ['GET / HTTP/1.1', 'Host: x', 'Meta-A: 1', 'meta-b: 2', 'META-A: 3', 'Other: 4', 'Other: 5'];
  expect(forwarded(lines, { ...asIs, firstOf: 'meta-' })).toEqual([...lines.toSpliced(4, 1), ...added('x')]);
  expect(forwarded(lines)).toEqual([...lines, ...added('x')]);
  expect(forwarded([...lines, 'Accept: 6', 'Accept: 7'], { ...asIs, firstOf: 'a' })).toContain('Accept: 7');
});

test('a proxy in front that is trusted says who the client is, and we add who the proxy is', () => {
  const lines = ['GET / HTTP/1.1', 'Host: x'];
  const trust = { trust: true };
  expect(forwarded(lines, asIs, trust).slice(2)).toEqual([
    ...['X-Forwarded-For: 192.0.2.7', 'X-Forwarded-Proto: http', 'X-Forwarded-Host: x'],
  ]);
  expect(forwarded(lines, asIs, { ...trust, secure: true })).toContain('X-Forwarded-Proto: https');
  const said = ['X-Forwarded-For: 1.1.1.1', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: y'];
  expect(forwarded([...lines, ...said, 'X-Forwarded-For: 2.2.2.2'], asIs, trust).slice(2)).toEqual([
    ...['X-Forwarded-For: 1.1.1.1, 2.2.2.2, 192.0.2.7', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: y'],
  ]);
  expect(forwarded(['GET / HTTP/1.0'], asIs, trust)).toContain('X-Forwarded-Host: ');
});
