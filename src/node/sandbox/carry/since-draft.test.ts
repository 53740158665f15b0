import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { archiveBytes, type ArchiveHeader, type FindDraft, planFiles, readArchive, writeArchive } from './archive.ts';
import { KnownPages } from './known-pages.ts';
import { sinceDraft } from './since-draft.ts';

// What a pause sends to a machine that has a draft, and what that machine makes of it.

const page = 4096;
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-pages-'));
  for (const name of ['draft/memory', 'there/memory', 'kept/memory', 'to'])
    mkdirSync(join(folder, name), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

const at = (...names: string[]) => join(folder, ...names);
/** Puts a file of the draft on both machines. */
function drafted(path: string, content: Uint8Array): void {
  for (const place of ['draft', 'there']) writeFileSync(at(place, path), content);
}
const planned = (): ArchiveHeader<unknown> => ({
  version: 1,
  record: {},
  agent: 'a',
  files: planFiles(at('kept'), () => false),
});

async function since(): Promise<ArchiveHeader<unknown>> {
  const pages = readdirSync(at('draft/memory')).toSorted();
  using known = await KnownPages.of(pages.map(name => at('draft/memory', name)));
  return await sinceDraft(planned(), at('kept'), { draftId: 'd', folder: at('draft'), known });
}

async function carried(): Promise<number> {
  const header = await since();
  await writeArchive(readArchive(at('kept'), header), at('to'), () => at('there'));
  for (const { path } of header.files)
    expect(Buffer.compare(readFileSync(at('to', path)), readFileSync(at('kept', path)))).toBe(0);
  return archiveBytes(header);
}

test('only pages of memory are sent that are nowhere in the draft, and all of it arrives', async () => {
  const [memory, other] = [randomBytes(600 * page), randomBytes(3 * page)];
  drafted('memory/pages-1.img', memory);
  drafted('memory/pages-2.img', other);
  // One process has grown at both ends, and one page of it has changed; another process has moved.
  const grown = Buffer.concat([randomBytes(2 * page), memory, Buffer.from('rest')]);
  randomBytes(page).copy(grown, 302 * page);
  writeFileSync(at('kept/memory/pages-1.img'), other);
  writeFileSync(at('kept/memory/pages-7.img'), grown);
  writeFileSync(at('kept/memory/core-1.img'), 'registers');
  const sent = await carried();
  expect(sent).toBeGreaterThan(3 * page);
  expect(sent).toBeLessThan(5 * page);
});

test('only changed blocks of a disk are sent, and a new hole gets nothing from the draft', async () => {
  const disk = randomBytes(200 * page);
  drafted('disk.img', disk);
  const later = Buffer.from(disk);
  later.fill(0, 10 * page, 12 * page);
  later.write('changed', 100 * page);
  writeFileSync(at('kept/disk.img'), later);
  expect(await carried()).toBeLessThan(5 * page);
});

test('a disk of another size, or one that is not in the draft, is sent whole', async () => {
  drafted('disk.img', randomBytes(10 * page));
  writeFileSync(at('kept/disk.img'), randomBytes(11 * page));
  expect(await carried()).toBeGreaterThan(11 * page);
});

test('a receiver without the draft, or with another one, gets no sandbox by it', async () => {
  const memory = randomBytes(20 * page);
  drafted('memory/pages-1.img', memory);
  writeFileSync(at('kept/memory/pages-1.img'), memory);
  const header = await since();
  const write = (findDraft?: FindDraft) => writeArchive(readArchive(at('kept'), header), at('to'), findDraft);
  await expect(write()).rejects.toThrow('the draft that it refers to is not here');
  writeFileSync(at('there/memory/pages-1.img'), memory.subarray(0, page));
  await expect(write(() => at('there'))).rejects.toThrow('is another one');
});

test('places and names that lead elsewhere are refused', async () => {
  drafted('memory/pages-1.img', randomBytes(page));
  writeFileSync(at('kept/memory/pages-1.img'), randomBytes(page));
  const header = planned();
  const [file] = header.files;
  if (!file) throw new Error('there is no file');
  const draft = { draftId: 'd', files: ['memory/pages-1.img'] };
  const wrong: Partial<ArchiveHeader<unknown>>[] = [
    { draft: { draftId: 'd', files: ['../elsewhere'] } },
    { draft: { draftId: 'd', files: ['/etc/passwd'] } },
    { draft, files: [{ ...file, extents: [], copies: [[0, page, 1, 0]] }] },
    { draft, files: [{ ...file, extents: [], copies: [[page, page, 0, 0]] }] },
    { draft, files: [{ ...file, extents: [], copies: [[0, page, 0, -1]] }] },
    { files: [{ ...file, extents: [], isDrafted: true }] },
  ];
  for (const part of wrong) {
    const text = Buffer.from(JSON.stringify({ ...header, ...part }));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(text.length);
    const source = (async function* () {
      yield Buffer.concat([length, text]);
    })();
    rmSync(at('to'), { recursive: true });
    mkdirSync(at('to'));
    const error = await writeArchive(source, at('to'), () => at('there')).catch((failed: unknown) => failed);
    expect(error).toBeInstanceOf(AtollError);
    expect(error).toMatchObject({ code: 'invalid' });
  }
});
