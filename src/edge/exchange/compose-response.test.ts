import { expect, test } from 'bun:test';
import { ResponseHead } from '../../http1/response-head.ts';
import { composeForeignHead, composeResponse, needsRewrite, speaksForOrigin } from './compose-response.ts';

const asIs = { close: false, isForeign: false, isInert: false };

function parsed(lines: string[]): ResponseHead {
  const head = new ResponseHead(32);
  const bytes = Buffer.from(`before${[...lines, '', ''].join('\r\n')}`, 'latin1');
  expect(head.parse(bytes, 6, bytes.length)).toBe(bytes.length);
  return head;
}

function written(compose: (out: Buffer) => number): string[] {
  const out = Buffer.alloc(4096, '?');
  const text = out.toString('latin1', 0, compose(out));
  expect(text.endsWith('\r\n\r\n')).toBe(true);
  return text.slice(0, -4).split('\r\n');
}
const composed = (lines: string[], plan: Partial<typeof asIs> = {}) =>
  written(out => composeResponse(out, parsed(lines), { ...asIs, ...plan }));
const mustChange = (lines: string[], plan: Partial<typeof asIs> = {}) =>
  needsRewrite(parsed(lines), { ...asIs, ...plan });

const plain = ['HTTP/1.1 200 OK', 'Content-Type: text/html', 'X-Mine: 1'];
const ofOrigin = [
  ...['Set-Cookie: a=b', 'Clear-Site-Data: "*"', 'Strict-Transport-Security: max-age=1', 'Alt-Svc: h3=":1"', 'NEL: {}'],
  ...['Report-To: {}', 'Reporting-Endpoints: a', 'Accept-CH: DPR', 'Critical-CH: DPR', 'Service-Worker-Allowed: /'],
];

test('an ordinary head passes as it is', () => {
  expect(mustChange(plain)).toBe(false);
  expect(composed(plain)).toEqual(plain);
});

test.each(['Connection: keep-alive', 'Keep-Alive: timeout=5', 'Proxy-Connection: a', 'Upgrade: h2c'])(
  '%s speaks of the connection to the upstream, and does not pass',
  line => {
    for (const at of [1, 2, 3]) {
      expect(mustChange(plain.toSpliced(at, 0, line))).toBe(true);
      expect(composed(plain.toSpliced(at, 0, line))).toEqual(plain);
    }
  },
);

test('an answer that another protocol is required says which', () => {
  const lines = ['HTTP/1.1 426 Upgrade Required', 'Upgrade: websocket'];
  expect(mustChange(lines)).toBe(false);
  expect(composed(lines)).toEqual(lines);
});

test('fields that Connection names do not pass either', () => {
  expect(composed([...plain, 'Connection: X-Hop', 'X-Hop: 1'])).toEqual(plain);
});

test('an answer of HTTP/1.0 becomes one of HTTP/1.1', () => {
  const lines = plain.with(0, 'HTTP/1.0 200 OK');
  expect(mustChange(lines)).toBe(true);
  expect(composed(lines)).toEqual(plain);
});

test('the client hears that the connection ends behind an answer', () => {
  expect(mustChange(plain, { close: true })).toBe(true);
  expect(composed([...plain, 'Connection: keep-alive'], { close: true })).toEqual([...plain, 'Connection: close']);
});

test('what a browser must not run is shown as a page of its own, without scripts', () => {
  expect(mustChange(plain, { isInert: true })).toBe(true);
  expect(composed(plain, { isInert: true })).toEqual([
    ...[...plain, 'Content-Security-Policy: sandbox', 'X-Content-Type-Options: nosniff'],
  ]);
});

test.each(ofOrigin)('%s is said only by whom the origin belongs to', line => {
  const lines = plain.toSpliced(1, 0, line);
  expect([speaksForOrigin(parsed(lines)), speaksForOrigin(parsed(plain))]).toEqual([true, false]);
  expect([mustChange(lines), composed(lines)]).toEqual([false, lines]);
  expect([mustChange(lines, { isForeign: true }), composed(lines, { isForeign: true })]).toEqual([true, plain]);
  expect(mustChange(plain, { isForeign: true })).toBe(false);
});

test('an interim head, or a switch of protocols, passes without what speaks for the whole origin', () => {
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket'];
  for (const line of ofOrigin) {
    const head = parsed(lines.toSpliced(2, 0, line));
    expect(written(out => composeForeignHead(out, head))).toEqual(lines);
  }
});
