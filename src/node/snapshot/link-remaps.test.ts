import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { needsLinks } from './link-remaps.ts';
import { encodeFields } from './images/protobuf.ts';

let directory: string;
beforeAll(() => (directory = mkdtempSync(join(tmpdir(), 'atoll-remaps-'))));
afterAll(() => rmSync(directory, { recursive: true }));

/** Writes the image with an entry of each type, like CRIU: original ID, ID of its substitute, type. */
function image(types: number[]): void {
  const entries = types.map((type, index) => {
    const fields = [index + 1, index + 10, type].map((value, at) => ({
      number: at + 1,
      wire: 0,
      value: BigInt(value),
    }));
    const message = encodeFields(fields as Parameters<typeof encodeFields>[0]);
    return Buffer.concat([new Uint8Array(new Uint32Array([message.length]).buffer), message]);
  });
  writeFileSync(join(directory, 'remap-fpath.img'), Buffer.concat([Buffer.from('magic..!'), ...entries]));
}

test('only names that CRIU has given to open files tie a dump to the root of the moment', async () => {
  expect(await needsLinks(directory)).toBe(false);
  image([1, 2]);
  expect(await needsLinks(directory)).toBe(false);
  for (const types of [[0], [1, 0, 2], [2, 0]]) {
    image(types);
    expect(await needsLinks(directory)).toBe(true);
  }
});
