import { expect, test } from 'bun:test';
import { RequestHead } from '../../http1/request-head.ts';
import { answerBytes } from './answer-bytes.ts';
import { wantsPage } from './wants-page.ts';

const browser = 'User-Agent: Mozilla/5.0 (X11)';

function asked(lines: string[], method = 'GET'): RequestHead {
  const head = new RequestHead(32);
  const bytes = Buffer.from([`${method} / HTTP/1.1`, 'Host: x', ...lines, '', ''].join('\r\n'));
  expect(head.parse(bytes, 0, bytes.length)).toBe(bytes.length);
  return head;
}

function read(bytes: Buffer): { lines: string[]; content: string } {
  const text = bytes.toString();
  const end = text.indexOf('\r\n\r\n');
  return { lines: text.slice(0, end).split('\r\n'), content: text.slice(end + 4) };
}

const answer = { status: 404, body: { message: 'gone – really', code: 404 }, headers: { 'Retry-After': '3' } };
const json = JSON.stringify(answer.body);
const jsonLines = [
  ...['HTTP/1.1 404 Not Found', 'Retry-After: 3', 'Content-Type: application/json'],
  ...[`Content-Length: ${Buffer.byteLength(json)}`, 'Cache-Control: no-store'],
];

test('clients get JSON that nobody keeps', () => {
  expect(read(answerBytes(answer, asked([]), false))).toEqual({ lines: jsonLines, content: json });
});

test('so does whoever asked what could not be read, and hears that the connection ends', () => {
  expect(read(answerBytes(answer, null, true))).toEqual({ lines: [...jsonLines, 'Connection: close'], content: json });
});

test('HEAD gets the same head without the content', () => {
  expect(read(answerBytes(answer, asked([], 'HEAD'), false))).toEqual({ lines: jsonLines, content: '' });
});

test('a person gets a page, which can do nothing', () => {
  const { lines, content } = read(answerBytes(answer, asked([browser]), false));
  expect(lines).toContain('Content-Type: text/html; charset=utf-8');
  expect(lines).toContain(`Content-Length: ${Buffer.byteLength(content)}`);
  expect(lines).toContain("Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'");
  expect(content).toContain('gone – really');
});

test('an answer without a body says nothing about one, and a status without words is an error', () => {
  const bytes = answerBytes({ status: 418, body: null, headers: {} }, asked([browser]), false);
  expect(read(bytes)).toEqual({ lines: ['HTTP/1.1 418 Error'], content: '' });
});

test.each([
  [true, [browser]],
  [true, ['user-agent: Opera/9.8']],
  [true, [browser, 'Accept: text/html, application/json']],
  [true, [browser, 'Accept: application/json', 'Accept: Text/HTML']],
  [true, [browser, 'Accept: */*', 'Sec-Fetch-Mode: navigate']],
  [true, [browser, 'Sec-Fetch-Mode: navigate', 'X-Requested-With: x']],
  [false, []],
  [false, ['User-Agent: curl/8']],
  [false, ['User-Agent: NotMozilla/5']],
  [false, [browser, 'Accept: Application/JSON']],
  [false, [browser, 'X-Requested-With: XMLHttpRequest']],
  [false, [browser, 'Sec-Fetch-Mode: CORS']],
  [false, [browser, 'Sec-Fetch-Mode: no-cors']],
  [false, [browser, 'Sec-Fetch-Mode: same-origin']],
  [false, [browser, 'Sec-Fetch-Mode: websocket']],
])('that a person looks at the answer is %p of %j', (isPerson, lines) => {
  expect(wantsPage(asked(lines).fields)).toBe(isPerson);
});
