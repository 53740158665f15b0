import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeUnread, readPieces, readWhole, streamFile } from './file-body.ts';

const MiB = 1 << 20;
let dir: string;
let path: string;
let files: FileHandle[];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'atoll-body-'));
  path = join(dir, 'file');
  files = [];
});
afterEach(async () => {
  for (const file of files) if (file.fd >= 0) await file.close();
  rmSync(dir, { recursive: true });
});

async function opened(content: Uint8Array | string): Promise<FileHandle> {
  writeFileSync(path, content);
  const file = await open(path);
  files.push(file);
  return file;
}
const isOpen = (file: FileHandle) => file.fd >= 0;
const textOf = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString();

test('a small file is read whole, from where it is asked to where it ends', async () => {
  const file = await opened('0123456789');
  expect(textOf(await readWhole(file, 0, 10))).toBe('0123456789');
  expect(textOf(await readWhole(file, 3, 5))).toBe('34');
  expect(textOf(await readWhole(file, 3, 100))).toBe('3456789');
  expect(textOf(await readWhole(file, 3, Number.POSITIVE_INFINITY))).toBe('3456789');
  expect(textOf(await readWhole(file, 10, 20))).toBe('');
});

test('up to a MiB is whole, and more is not', async () => {
  const file = await opened(Buffer.alloc(2 * MiB, 'a'));
  expect((await readWhole(file, 0, MiB))?.length).toBe(MiB);
  expect((await readWhole(file, MiB, Number.POSITIVE_INFINITY))?.length).toBe(MiB);
  expect(await readWhole(file, 0, MiB + 1)).toBeUndefined();
  expect(await readWhole(file, MiB - 1, Number.POSITIVE_INFINITY)).toBeUndefined();
  // Near the file's end, even a limit below the requested size is too large.
  expect(await readWhole(file, 2 * MiB - 1, 4 * MiB)).toBeUndefined();
});

test('a file whose size only reading tells is read whole', async () => {
  const file = await open('/proc/self/status');
  files.push(file);
  expect(textOf(await readWhole(file, 0, Number.POSITIVE_INFINITY))).toContain('\nPid:');
});

const content = Buffer.from(Array.from({ length: 300_000 }, (_, index) => `${index},`).join(''));

for (const [name, range] of Object.entries({
  'a whole file': { start: 0, end: content.length },
  'a part of a file': { start: 7, end: MiB + 12 },
  'a file to its end': { start: 5, end: Number.POSITIVE_INFINITY },
  'nothing of a file': { start: 5, end: 5 },
}))
  test(`${name} is streamed, and in pieces too, and closed`, async () => {
    for (const bodyOf of [
      (file: FileHandle, begin: () => void) => new Response(streamFile(file, range, begin)).bytes(),
      async (file: FileHandle, begin: () => void) =>
        Buffer.concat(await Array.fromAsync(readPieces(file, range, begin))),
    ]) {
      const file = await opened(content);
      let begun = 0;
      const bytes = await bodyOf(file, () => begun++);
      expect(Buffer.from(bytes).equals(content.subarray(range.start, range.end))).toBe(true);
      expect([begun, isOpen(file)]).toEqual([1, false]);
    }
  });

test('pieces are a quarter of a MiB, and each its own memory', async () => {
  const file = await opened(content);
  const pieces = await Array.fromAsync(readPieces(file, { start: 0, end: MiB / 2 + 1 }, () => {}));
  expect(pieces.map(piece => piece.length)).toEqual([MiB / 4, MiB / 4, 1]);
});

test('a file that became shorter breaks off a stream, and ends pieces', async () => {
  const range = { start: 0, end: content.length };
  const streamed = await opened(content);
  truncateSync(path, 100);
  await expect(new Response(streamFile(streamed, range, () => {})).bytes()).rejects.toThrow('became shorter');
  const inPieces = await opened(content);
  truncateSync(path, 100);
  expect((await Array.fromAsync(readPieces(inPieces, range, () => {}))).map(piece => piece.length)).toEqual([100]);
  expect([isOpen(streamed), isOpen(inPieces)]).toEqual([false, false]);
});

test('a stream that nobody wants any more closes its file', async () => {
  const file = await opened(Buffer.alloc(5 * MiB));
  const reader = streamFile(file, { start: 0, end: 5 * MiB }, () => {}).getReader();
  expect((await reader.read()).value?.length).toBeGreaterThan(0);
  await reader.cancel();
  while (isOpen(file)) await Bun.sleep(1);
  const pieces = readPieces(await opened(content), { start: 0, end: content.length }, () => {});
  await pieces.next();
  await pieces.return(undefined);
  expect(isOpen(files.at(-1) as FileHandle)).toBe(false);
});

test('a file whose client leaves is closed, unless somebody has begun to read', async () => {
  const closed = async (file: FileHandle) => {
    while (isOpen(file)) await Bun.sleep(1);
  };
  const client = new AbortController();
  const [unread, read] = [await opened('a'), await opened('b')];
  closeUnread(unread, client);
  closeUnread(read, client)();
  expect(isOpen(unread)).toBe(true);
  client.abort();
  await closed(unread);
  expect(isOpen(read)).toBe(true);
  // The client has already left.
  const late = await opened('c');
  closeUnread(late, client);
  await closed(late);
});
