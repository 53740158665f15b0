import { expect, test } from 'bun:test';
import { inLentPieces, inPieces } from './pieces.ts';

async function pieces(lengths: number[], size: number, cut = inPieces): Promise<string[]> {
  let next = 0;
  async function* source() {
    for (const length of lengths) yield Uint8Array.from({ length }, () => 97 + (next++ % 26));
  }
  const found: string[] = [];
  for await (const piece of cut(source(), size)) found.push(Buffer.from(piece).toString());
  return found;
}

for (const cut of [inPieces, inLentPieces]) {
  test(`bytes come in pieces of one size, whatever they came in (${cut.name})`, async () => {
    expect(await pieces([3, 1, 4], 4, cut)).toEqual(['abcd', 'efgh']);
    expect(await pieces([9], 4, cut)).toEqual(['abcd', 'efgh', 'i']);
    expect(await pieces([1, 1, 1], 4, cut)).toEqual(['abc']);
  });

  test(`nothing is one empty piece (${cut.name})`, async () => {
    expect(await pieces([], 4, cut)).toEqual(['']);
    expect(await pieces([0, 0], 4, cut)).toEqual(['']);
  });
}

test('a lent piece is valid until the next but one is requested', async () => {
  async function* source() {
    yield Buffer.from('aabbcc');
  }
  const lent = inLentPieces(source(), 2);
  const [one, two] = [(await lent.next()).value, (await lent.next()).value];
  expect([`${one}`, `${two}`]).toEqual(['aa', 'bb']);
  await lent.next();
  expect([`${one}`, `${two}`]).toEqual(['cc', 'bb']);
});
