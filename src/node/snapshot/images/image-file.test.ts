import { afterAll, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lookThrough, rewriteImage } from './image-file.ts';
import { encodeFields, numberIn, withNumbers } from './protobuf.ts';

const directory = mkdtempSync(join(tmpdir(), 'atoll-images-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** An image with this many entries, each with its number as the first field. */
function imageOf(count: number): string {
  const path = join(directory, 'some.img');
  const parts = Array.from({ length: count }, (_, number) => {
    const message = encodeFields([{ number: 1, wire: 0, value: BigInt(number) }]);
    return Buffer.concat([new Uint8Array(new Uint32Array([message.length]).buffer), message]);
  });
  writeFileSync(path, Buffer.concat([Buffer.from('magic..!'), ...parts]));
  return path;
}

async function numbersOf(path: string): Promise<number[]> {
  const numbers: number[] = [];
  await lookThrough(path, entry => void numbers.push(numberIn(entry, 1)));
  return numbers;
}

test('entries that change are written anew, all others are copied', async () => {
  const [from, to] = [imageOf(1000), join(directory, 'changed.img')];
  await rewriteImage(from, to, entry => entry);
  expect(readFileSync(to).equals(readFileSync(from))).toBe(true);
  const changes = (number: number) => number % 100 === 0 || number === 999;
  await rewriteImage(from, to, entry => (changes(numberIn(entry, 1)) ? withNumbers(entry, { 1: 70_000 }) : entry));
  const expected = Array.from({ length: 1000 }, (_, number) => (changes(number) ? 70_000 : number));
  expect(await numbersOf(to)).toEqual(expected);
});

test('others get a turn while a large image is looked through', async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await lookThrough(imageOf(1000), () => {
    for (const end = performance.now() + 0.2; performance.now() < end;);
  });
  clearInterval(timer);
  expect(turns).toBeGreaterThan(3);
});

test('an image that is too large is refused and not read, one that is cut off is named', async () => {
  const [path, to] = [imageOf(10), join(directory, 'refused.img')];
  truncateSync(path, 30);
  await expect(lookThrough(path, () => {})).rejects.toThrow('cut off');
  truncateSync(path, (16 << 20) + 1);
  await expect(lookThrough(path, () => {})).rejects.toMatchObject({ code: 'precondition' });
  await expect(rewriteImage(path, to, entry => entry)).rejects.toMatchObject({ code: 'precondition' });
  expect(existsSync(to)).toBe(false);
});
