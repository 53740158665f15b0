import { expect, test } from 'bun:test';
import { inPieces } from './pieces.ts';

async function pieces(lengths: number[], size: number): Promise<string[]> {
  let next = 0;
  async function* source() {
    for (const length of lengths) yield Uint8Array.from({ length }, () => 97 + (next++ % 26));
  }
  const found: string[] = [];
  for await (const piece of inPieces(source(), size)) found.push(Buffer.from(piece).toString());
  return found;
}

test('bytes come in pieces of one size, whatever they came in', async () => {
  expect(await pieces([3, 1, 4], 4)).toEqual(['abcd', 'efgh']);
  expect(await pieces([9], 4)).toEqual(['abcd', 'efgh', 'i']);
  expect(await pieces([1, 1, 1], 4)).toEqual(['abc']);
});

test('nothing is one empty piece', async () => {
  expect(await pieces([], 4)).toEqual(['']);
  expect(await pieces([0, 0], 4)).toEqual(['']);
});
