import { expect, test } from 'bun:test';
import { boundaryOf, readParts } from './multipart.ts';

/** The parts read from a body that comes in pieces of this many bytes: each part's head and whole content. */
async function partsOf(text: string, pieceBytes = 7, boundary = 'B') {
  const bytes = Buffer.from(text);
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (let at = 0; at < bytes.length; at += pieceBytes)
        controller.enqueue(Uint8Array.from(bytes.subarray(at, at + pieceBytes)));
      controller.close();
    },
  });
  const parts: { name: string | undefined; filename: string | undefined; content: string; ended: boolean }[] = [];
  for await (const event of readParts(body, boundary)) {
    const part = parts.at(-1);
    if (event.kind === 'head') parts.push({ ...event.head, content: '', ended: false });
    else if (!part || part.ended) throw new Error('content without a part');
    else if (event.kind === 'end') part.ended = true;
    else part.content += Buffer.from(event.bytes).toString();
  }
  return parts;
}

const disposition = (rest: string) => `Content-Disposition: form-data${rest}`;
const form = (...parts: [head: string, content: string][]) =>
  `${parts.map(([head, content]) => `--B\r\n${head}\r\n\r\n${content}\r\n`).join('')}--B--\r\n`;
const isInvalid = (text: string, message: string) =>
  expect(partsOf(text)).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining(message) });

test('parts are read with their names, however the pieces fall', async () => {
  const contents = ['one', '', 'a\r\n--', '\r\n--A\r\n\r\n-', '--B\r\n', '\r\r\n-\r\n--\r'];
  const parts = contents.map((content, at): [string, string] => [disposition(`; name="n${at}"`), content]);
  const text = `preamble\r\n${form(...parts)}epilogue --B`;
  for (let pieceBytes = 1; pieceBytes <= 20; pieceBytes++)
    expect(await partsOf(text, pieceBytes)).toEqual([
      ...contents.map((content, at) => ({ name: `n${at}`, filename: undefined, content, ended: true })),
    ]);
  expect(await partsOf(text, text.length)).toHaveLength(contents.length);
});

test('a body without parts has none', async () => {
  expect(await partsOf('--B--')).toEqual([]);
  expect(await partsOf('--B--\r\n--B\r\n\r\nlate\r\n')).toEqual([]);
});

test.each([
  ['; name="a"; filename="b.txt"', 'a', 'b.txt'],
  ['; filename=b.txt; name=a', 'a', 'b.txt'],
  ['; NAME="a"; FileName="b"', 'a', 'b'],
  ['; name="a\\"b\\\\c\\d"', 'a"b\\c\\d', undefined],
  ['; filename="a;b"; name="c"', 'c', 'a;b'],
  ['; filename=""', undefined, ''],
  ['; filename="plain"; filename*=UTF-8\'en\'%e2%82%ac%20x', undefined, '€ x'],
  ['; filename="plain"; filename*=latin1\'\'%e4', undefined, 'plain'],
  ['; filename="plain"; filename*=utf-8', undefined, 'plain'],
  ['', undefined, undefined],
])('form-data%s names its field and file', async (rest, name, filename) => {
  expect(await partsOf(form([disposition(rest), 'x']))).toEqual([
    { name, filename, content: 'x', ended: true } as never,
  ]);
});

test('a part is named by its disposition among other lines, or not at all', async () => {
  const lines = ['Content-Type: a; name="b"', disposition('; name="c"').toLowerCase(), 'X: y'].join('\r\n');
  expect(await partsOf(form([lines, 'x'], ['X: y; name="d"', 'z']))).toMatchObject([
    ...[
      { name: 'c', content: 'x' },
      { name: undefined, content: 'z' },
    ],
  ]);
});

test('a boundary may be padded with blanks, and with nothing else', async () => {
  const padded = `--B \t\r\n${disposition('; name=a')}\r\n\r\nx\r\n--B--`;
  for (let pieceBytes = 1; pieceBytes < 10; pieceBytes++)
    expect(await partsOf(padded, pieceBytes)).toMatchObject([{ name: 'a', content: 'x' }]);
  for (const rest of ['-x', 'x-', '-']) await isInvalid(`--B${rest}\r\n\r\n\r\nx\r\n--B--`, 'broken boundary');
  await isInvalid('--Bx\r\n\r\n\r\nx\r\n--B--', 'broken boundary');
  await isInvalid(`--B \rx`, 'broken boundary');
});

test('a part may have no head at all', async () => {
  for (const content of ['x', 'x'.repeat(17 << 10)])
    expect(await partsOf(`--B\r\n\r\n${content}\r\n--B--`, 1 << 20)).toMatchObject([
      { name: undefined, content, ended: true },
    ]);
});

test('a body that ends before its last boundary is cut off', async () => {
  const whole = form([disposition('; name=a'), 'x']);
  for (let length = 0; length < whole.length - 2; length++)
    await isInvalid(whole.slice(0, length), 'ends before its last boundary');
  expect(await partsOf(whole.slice(0, -2))).toHaveLength(1);
});

test('a head has at most 16 KiB', async () => {
  // Includes the line break behind the preceding boundary.
  const padded = (bytes: number) => `X: ${'y'.repeat(bytes - 5)}`;
  expect(await partsOf(form([padded(16 << 10), 'x']))).toHaveLength(1);
  await isInvalid(form([padded((16 << 10) + 1), 'x']), 'is longer than 16384 bytes');
  await isInvalid(`--B\r\n${'y'.repeat(17 << 10)}`, 'is longer than 16384 bytes');
});

test('a broken name of a file is refused', async () => {
  await isInvalid(form([disposition("; filename*=utf-8''%ff"), 'x']), 'broken filename*');
});

test('the content type names the boundary', () => {
  expect(boundaryOf('multipart/form-data; boundary=abc')).toBe('abc');
  expect(boundaryOf('multipart/form-data; charset=x; Boundary="a b"')).toBe('a b');
  expect(boundaryOf(`multipart/form-data; boundary=${'x'.repeat(70)}`)).toHaveLength(70);
  for (const rest of ['', '; boundary=', '; boundary=""', `; boundary=${'x'.repeat(71)}`])
    expect(() => boundaryOf(`multipart/form-data${rest}`)).toThrow('a boundary of 1 to 70 characters');
});
