import { BodyReader } from '../../../src/http1/body-reader.ts';
import { cutIntoPieces } from '../engine/pieces.ts';
import type { Random } from '../engine/random.ts';
import { agree, holds, type Target } from '../engine/target.ts';

type Taken = { end: number; data: string; done: boolean };

/** Reads a chunked body; `end` is -1 if it is malformed. */
function take(pieces: readonly Buffer[]): Taken {
  const data: Buffer[] = [];
  const reader = new BodyReader((bytes, start, end) => {
    holds(start <= end && end <= bytes.length, 'data is inside of the bytes');
    data.push(Buffer.from(bytes.subarray(start, end)));
  });
  reader.reset('chunked', 0);
  let end = 0;
  for (const piece of pieces) {
    // Not at the start, as in a connection's buffer.
    const bytes = Buffer.concat([Buffer.from('xx'), piece, Buffer.from('yy')]);
    const at = reader.take(bytes, 2, bytes.length - 2);
    if (at < 0) return { end: -1, data: '', done: false };
    holds(at >= 2 && at <= bytes.length - 2, 'the end is inside of the bytes');
    end += at - 2;
    if (reader.done) break;
    holds(at === bytes.length - 2, 'a body that goes on takes everything');
  }
  return { end, data: Buffer.concat(data).toString('latin1'), done: reader.done };
}

/** A chunked body of the parts, now and then in ways that few senders use. */
export function chunked(random: Random): Buffer {
  const parts: Buffer[] = [];
  for (let left = random.below(5); left > 0; left--) {
    const part = random.bytes(1 + random.below(30));
    const size = part.length.toString(16);
    parts.push(
      Buffer.from(
        `${random.pick(['', '0', '000'])}${random.once(2) ? size.toUpperCase() : size}${random.pick(['', '', '', ';a=b', ';', ' ;a', ';a="\\"b"'])}\r\n`,
      ),
      part,
      Buffer.from('\r\n'),
    );
  }
  parts.push(
    Buffer.from(
      `${random.pick(['0', '00', '0;x'])}\r\n${random.pick(['', '', 'A: b\r\n', 'A:\r\nB: c\r\n', ' x\r\n'])}\r\n`,
    ),
  );
  return Buffer.concat([...parts, Buffer.from(random.once(2) ? 'GET / HTTP/1.1\r\n' : '')]);
}

export const chunkedBodies: Target = {
  name: 'chunked-bodies',
  corpus: [
    '5\r\nhello\r\n0\r\n\r\n',
    '0\r\n\r\nGET / HTTP/1.1\r\n',
    'a;name="v"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n',
    '1fffffffffffff\r\n',
  ],
  dictionary: ['0\r\n\r\n', '\r\n\r\n', ';', '1\r\na\r\n', 'ffffffffffffffff', '20000000000000', 'Content-Length: 5'],
  generate: chunked,
  pumps: [
    { prefix: '', unit: '1\r\na\r\n', suffix: '0\r\n\r\n' },
    { prefix: '1;', unit: 'a', suffix: '' },
    { prefix: '0\r\n', unit: 'a: b\r\n', suffix: '\r\n' },
    { prefix: '', unit: '0', suffix: '' },
    { prefix: '1', unit: ' ', suffix: ';\r\n' },
    { prefix: '1;', unit: '\t', suffix: 'x\r\n' },
    { prefix: '0\r\n', unit: 'A', suffix: '' },
  ],
  work: input => take([input]),
  check(input, random) {
    const whole = take([input]);
    agree(take(cutIntoPieces(input, random)), whole, 'a body is the same in pieces');
    holds(whole.data.length <= input.length, 'no data is invented');
    return whole.end < 0 ? 'malformed' : whole.done ? `done ${whole.end === input.length}` : 'goes on';
  },
};
