import { expect, test } from 'bun:test';
import { ChunkScanner } from './chunk-scanner.ts';

/** Feeds `text` in pieces that end at `cuts`. Answers where the body ended, 'more' or 'malformed'. */
function scan(text: string, cuts: readonly number[] = []): number | 'more' | 'malformed' {
  const scanner = new ChunkScanner();
  const bytes = Buffer.from(text, 'latin1');
  let start = 0;
  for (const end of [...cuts, bytes.length]) {
    const position = scanner.scan(bytes, start, end);
    if (position < 0) return 'malformed';
    if (scanner.done) return position;
    start = end;
  }
  return 'more';
}

const whole = [
  '0\r\n\r\n',
  '5\r\nhello\r\n0\r\n\r\n',
  '5;name=value\r\nhello\r\n0\r\n\r\n',
  '5;quoted="a;b"\r\nhello\r\n0\r\n\r\n',
  'a\r\n0123456789\r\nA\r\n0123456789\r\n000\r\n\r\n',
  '3\r\n\r\n\n\r\n0\r\nTrailer: value\r\nOther:\r\n\r\n',
];

const broken = [
  '\r\n',
  'g\r\n',
  ' 5\r\nhello\r\n',
  '5 \r\nhello\r\n0\r\n\r\n',
  '5 ;a\r\nhello\r\n0\r\n\r\n',
  '0x5\r\nhello\r\n0\r\n\r\n',
  '-5\r\n',
  '+5\r\n',
  ';ext\r\n',
  '5\nhello\r\n0\r\n\r\n',
  '5\rhello',
  '5\r\nhello0\r\n\r\n',
  '5\r\nhello\n0\r\n\r\n',
  '5\r\nhelloo\r\n0\r\n\r\n',
  '20000000000000\r\n',
  'ffffffffffffffffffff\r\n',
  `${'0'.repeat(40)}5\r\nhello`,
  '5;a\x00b\r\nhello\r\n',
  '5;a\nhello\r\n0\r\n\r\n',
  `5;${'x'.repeat(5000)}\r\n`,
  '0\r\nno colon\r\n\r\n',
  '0\r\n folded\r\n\r\n',
  '0\r\na: b\n\r\n',
  '0\r\n\n',
  '0\r\n\rx',
  `0\r\na: ${'x'.repeat(20_000)}\r\n\r\n`,
];

test('a whole body ends where it ends, whatever follows and however it is cut', () => {
  for (const text of whole) {
    const length = text.length;
    for (let cut = 0; cut <= length; cut++) expect(scan(`${text}GET /`, [cut])).toBe(length);
    expect(
      scan(
        text,
        Array.from({ length }, (_, i) => i + 1),
      ),
    ).toBe(length);
    for (let end = 0; end < length; end++) expect(scan(text.slice(0, end))).toBe('more');
  }
});

test('a malformed body is refused, however it is cut', () => {
  for (const text of broken) {
    expect([text, scan(text)]).toEqual([text, 'malformed']);
    expect(
      scan(
        text,
        Array.from({ length: text.length }, (_, i) => i + 1),
      ),
    ).toBe('malformed');
  }
});
