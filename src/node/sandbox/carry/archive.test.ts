import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
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

test('an archive that is cut short, too long or leads elsewhere is refused', async () => {
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

/** An archive with this header, whatever it contains, followed by bytes. */
function archiveOf(header: unknown, data = ''): Buffer {
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text, Buffer.from(data)]);
}
const received = (header: object, data = '', findDraft?: (draftId: string) => string | undefined) =>
  writeArchive(pieces(archiveOf({ version: 1, record, agent: 'a', ...header }, data), 5), to(), findDraft);
const file = (path: string, sizeBytes: number, more: object = {}) => ({
  path,
  sizeBytes,
  mode: 0o600,
  extents: [],
  ...more,
});

test('a file of more than one piece arrives whole, with its mode', async () => {
  const content = Buffer.alloc((2 << 20) + 5, 'abc');
  writeFileSync(join(from(), 'disk.img'), content, { mode: 0o640 });
  const archive = await bytesOf(readArchive(from(), planned()));
  await writeArchive(pieces(archive, 300_000), to());
  expect(readFileSync(join(to(), 'disk.img')).equals(content)).toBe(true);
  expect(statSync(join(to(), 'disk.img')).mode & 0o777).toBe(0o640);
});

test('a file that becomes shorter while it is read ends the archive with an error', async () => {
  await write('disk.img', 10, [[0, 'abcdefghij']]);
  const header = planned();
  truncateSync(join(from(), 'disk.img'), 4);
  await expect(bytesOf(readArchive(from(), header))).rejects.toThrow('disk.img has become shorter');
});

test('a header beyond 64 MiB is refused before it is read, and whoever sends it is told to stop', async () => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE((64 << 20) + 1);
  let [sent, stopped] = [0, false];
  async function* endless() {
    try {
      for (yield length; ; sent++) yield Buffer.alloc(1 << 20);
    } finally {
      stopped = true;
    }
  }
  await expect(writeArchive(endless(), to())).rejects.toThrow('its header is too long');
  expect([sent, stopped]).toEqual([0, true]);
});

test('a header has to be one: of this version, with few enough files, each at a proper place', async () => {
  const names = (count: number) => Array.from({ length: count }, () => 'x');
  for (const [header, why] of [
    [{ version: 2, files: [] }, 'another version'],
    [{ files: 'many' }, 'another version'],
    [{ files: names(100_001) }, 'another version'],
    [{ files: [], draft: { draftId: 'd', files: names(100_001) } }, 'no proper name'],
    [{ files: [], draft: { draftId: 'd', files: ['../x'] } }, 'no proper name'],
    [{ files: [], draft: { draftId: 'd' } }, 'no proper name'],
    [{ files: [file('x', 1, { isDrafted: true })] }, 'it names no draft'],
    [
      {
        files: [
          file('x', 4, {
            extents: [
              [2, 1],
              [1, 1],
            ],
          }),
        ],
      },
      'does not fit together',
    ],
    [{ files: [file('x', 4, { extents: [[1, 0]] })] }, 'does not fit together'],
    [{ files: [file('x', 4, { extents: [[0.5, 1]] })] }, 'does not fit together'],
    [{ files: [file('x', 4, { copies: [[0, 5, 0, 0]] })] }, 'does not fit together'],
    [{ files: [file('x', 4, { copies: [[0, 4, 0, -1]] })] }, 'does not fit together'],
    [{ files: [file('x', 4, { copies: [[0, 4, 0, 0.5]] })] }, 'does not fit together'],
    [{ files: [], draft: { draftId: 'd', files: [] } }, 'is not here'],
  ] as const)
    await expect(received(header)).rejects.toThrow(why);
  await expect(writeArchive(pieces(Buffer.from([0, 0, 0, 1, 0x7b]), 9), to())).rejects.toThrow('no JSON');
});

test('parts in the receiver’s draft are not sent again: files continue from it, and stretches are copied', async () => {
  const draft = join(folder, 'draft');
  mkdirSync(draft);
  writeFileSync(join(draft, 'disk.img'), 'abcdefgh');
  writeFileSync(join(draft, 'pages-1.img'), 'ABCDEFGH');
  const known = { draftId: 'd1', files: ['pages-1.img'] };
  await received(
    {
      draft: known,
      files: [
        file('disk.img', 6, { isDrafted: true, extents: [[2, 2]] }),
        file('memory/pages-2.img', 6, {
          extents: [[0, 1]],
          copies: [
            [1, 3, 0, 4],
            [4, 2, 0, 0],
          ],
        }),
      ],
    },
    '12!',
    draftId => (draftId === 'd1' ? draft : undefined),
  );
  expect(readFileSync(join(to(), 'disk.img'), 'utf8')).toBe('ab12ef');
  expect(readFileSync(join(to(), 'memory/pages-2.img'), 'utf8')).toBe('!EFGAB');
  expect(existsSync(join(draft, 'disk.img'))).toBe(false);
  for (const [copies, why] of [
    [[[0, 1, 1, 0]], 'does not name'],
    [[[0, 2, 0, 7]], 'another one'],
  ] as const)
    await expect(
      received({ draft: known, files: [file(`${why.length}`, 2, { copies })] }, '', () => draft),
    ).rejects.toThrow(why);
});
