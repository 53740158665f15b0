import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'bun:test';
import type { PausedRecord } from '../records/record.ts';
import { archiveBytes, type ArchiveHeader, planFiles, readArchive, writeArchive } from './archive.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-archive-'));
  for (const name of ['from/memory', 'to']) mkdirSync(join(folder, name), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

const from = () => join(folder, 'from');
const to = () => join(folder, 'to');
const record = { sandboxId: 'i1', executionId: 'e1' } as PausedRecord;
const planned = (): ArchiveHeader<unknown> => ({
  version: 1,
  record,
  agent: 'a',
  files: planFiles(from(), path => path === 'left-out'),
});

async function write(path: string, sizeBytes: number, pieces: [at: number, text: string][]): Promise<void> {
  const file = await open(join(from(), path), 'w', 0o600);
  await file.truncate(sizeBytes);
  for (const [at, text] of pieces) await file.write(text, at);
  await file.sync();
  await file.close();
}

async function bytesOf(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of source) parts.push(part);
  return Buffer.concat(parts);
}
async function* pieces(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

test('files arrive as they were, and what is a hole is sent by nobody', async () => {
  await write('disk.img', 64 << 20, [
    [0, 'begin'],
    [32 << 20, 'middle'],
    [(64 << 20) - 3, 'end'],
  ]);
  await write('memory/pages-1.img', 5, [[0, 'pages']]);
  await write('memory/empty', 0, []);
  await write('left-out', 1, [[0, 'x']]);
  const header = planned();
  const archive = await bytesOf(readArchive(from(), header));
  expect(archive.length).toBe(archiveBytes(header));
  expect(archive.length).toBeLessThan(1 << 20);
  expect(await writeArchive(pieces(archive, 1000), to())).toEqual(header);
  expect(planFiles(to(), () => false).map(({ path }) => path)).toEqual([
    'disk.img',
    'memory/empty',
    'memory/pages-1.img',
  ]);
  for (const { path } of header.files)
    expect(readFileSync(join(to(), path)).equals(readFileSync(join(from(), path)))).toBe(true);
  expect(statSync(join(to(), 'disk.img')).blocks * 512).toBeLessThan(1 << 20);
});

test('what is cut short, longer than it says or leads elsewhere is refused', async () => {
  await write('disk.img', 10, [[0, 'abcdefghij']]);
  const header = planned();
  const archive = await bytesOf(readArchive(from(), header));
  const other = (files: ArchiveHeader<unknown>['files']) => {
    const text = Buffer.from(JSON.stringify({ ...header, files }));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(text.length);
    return Buffer.concat([length, text, archive.subarray(-10)]);
  };
  const [file] = header.files;
  if (!file) throw new Error('there is no file');
  for (const wrong of [
    archive.subarray(0, -1),
    archive.subarray(0, 3),
    Buffer.concat([archive, Buffer.from('x')]),
    other([{ ...file, path: '../disk.img' }]),
    other([{ ...file, path: '/etc/x' }]),
    other([{ ...file, extents: [[5, 10]] }]),
    other([{ ...file, extents: [[-1, 10]] }]),
  ]) {
    rmSync(to(), { recursive: true });
    mkdirSync(to());
    await expect(writeArchive(pieces(wrong, 7), to())).rejects.toMatchObject({ code: 'invalid' });
  }
});
