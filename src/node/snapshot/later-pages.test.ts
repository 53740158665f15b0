import { afterEach, beforeEach, expect, test } from 'bun:test';
import { linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lookThrough } from './images/image-file.ts';
import { chooseLaterPages, muchMemory } from './later-pages.ts';
import { encodeFields, numberIn, type Field } from './images/protobuf.ts';

const MiB = 2 ** 20;
const plenty = { bytesMax: 2 ** 40, measure: muchMemory };
const present = 4;
const mayBeLater = 2;

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'atoll-pages-'));
  for (const name of ['snapshot', 'links']) mkdirSync(join(directory, name));
});
afterEach(() => rmSync(directory, { recursive: true }));
const snapshot = () => join(directory, 'snapshot');
const links = () => join(directory, 'links');

const number = (field: number, value: number): Field => ({ number: field, wire: 0, value: BigInt(value) });

type Mapping = { at: number; bytes: number; flags?: number; advice?: number };
const anonymous = 0x22;

/** Mappings of a process, as CRIU lists them. */
function mappingsOf(pid: number, mappings: Mapping[]): void {
  const message = encodeFields(
    mappings.map(({ at, bytes, flags = anonymous, advice }) => {
      const fields = [number(1, at), number(2, at + bytes), number(6, flags)];
      return { number: 14, wire: 2, value: encodeFields(advice ? [...fields, number(9, advice)] : fields) };
    }),
  );
  const parts = [new Uint8Array(new Uint32Array([message.length]).buffer), message];
  writeFileSync(join(snapshot(), `mm-${pid}.img`), Buffer.concat([Buffer.from('magic..!'), ...parts]));
}

/** An image with so many bytes of pages. */
function pagesOf(pagesId: number, bytes: number): void {
  const file = join(snapshot(), `pages-${pagesId}.img`);
  writeFileSync(file, '');
  truncateSync(file, bytes);
}

/** A list of pages as CRIU writes it, and the link to it that a restore begins with. */
function listOf(
  pid: number,
  pieces: { at: number; bytes: number; flags?: number }[],
  pagesId = pid,
  mappings: Mapping[] = [],
): void {
  mappingsOf(pid, mappings);
  const bytesOfAll = pieces.reduce((sum, { bytes }) => sum + bytes, 0);
  pagesOf(pagesId, bytesOfAll);
  const entries = pieces.map(({ at, bytes, flags = present | mayBeLater }) => [
    number(1, at),
    number(2, bytes / 4096),
    number(4, flags),
    number(5, bytes / 4096),
  ]);
  const messages = [[number(1, pagesId)], ...entries].map(fields => encodeFields(fields));
  const parts = messages.flatMap(message => [new Uint8Array(new Uint32Array([message.length]).buffer), message]);
  const name = `pagemap-${pid}.img`;
  writeFileSync(join(snapshot(), name), Buffer.concat([Buffer.from('magic..!'), ...parts]), { mode: 0o644 });
  linkSync(join(snapshot(), name), join(links(), name));
}

const choose = (options = plenty) => chooseLaterPages(snapshot(), links(), options);

/** Addresses that CRIU is told to leave out. */
async function leftOut(pid: number): Promise<number[]> {
  const found: number[] = [];
  await lookThrough(join(links(), `pagemap-${pid}.img`), fields => {
    if (numberIn(fields, 4) & mayBeLater) found.push(numberIn(fields, 1));
  });
  return found;
}

test('large pieces come later, small ones, others’ and those of files at once', async () => {
  listOf(2, [{ at: 4096, bytes: 8192 }], 7);
  listOf(9, [
    { at: 16 * MiB, bytes: 4096 },
    { at: 32 * MiB, bytes: 40 * MiB },
    { at: 100 * MiB, bytes: 2 * MiB, flags: present },
    { at: 200 * MiB, bytes: 3 * MiB },
  ]);
  mappingsOf(9, [
    { at: 16 * MiB, bytes: 56 * MiB },
    { at: 100 * MiB, bytes: 2 * MiB, flags: 0x2 },
    { at: 110 * MiB, bytes: 2 * MiB, flags: 0x21 },
    { at: 120 * MiB, bytes: 2 * MiB, flags: anonymous | 0x20_00 },
    { at: 200 * MiB, bytes: 4 * MiB },
  ]);
  const before = readFileSync(join(snapshot(), 'pagemap-9.img'));
  expect(await choose()).toEqual({
    later: [
      {
        pid: 9,
        file: 'pages-9.img',
        areas: [
          { from: 16 * MiB, to: 72 * MiB },
          { from: 200 * MiB, to: 204 * MiB },
        ],
        pieces: [
          { from: 32 * MiB, to: 72 * MiB, offset: 4096, mayBeLater: true },
          { from: 200 * MiB, to: 203 * MiB, offset: 4096 + 42 * MiB, mayBeLater: true },
        ],
      },
    ] as never,
    now: [
      { file: 'pages-7.img', from: 0, to: 1 },
      { file: 'pages-9.img', from: 0, to: 1 },
      { file: 'pages-9.img', from: 40, to: 43 },
    ],
  });
  expect([await leftOut(2), await leftOut(9)]).toEqual([[], [32 * MiB, 200 * MiB]]);
  // The snapshot's own list is unchanged, and so are its permissions.
  expect(readFileSync(join(snapshot(), 'pagemap-9.img'))).toEqual(before);
  expect(statSync(join(links(), 'pagemap-9.img')).mode & 0o777).toBe(0o644);
});

test('memory that two processes have at the same address comes at once', async () => {
  listOf(2, [
    { at: 32 * MiB, bytes: 64 * MiB },
    { at: 1024 * MiB, bytes: 48 * MiB },
  ]);
  listOf(3, [{ at: 95 * MiB, bytes: 64 * MiB }]);
  listOf(4, [{ at: 159 * MiB, bytes: 64 * MiB }]);
  const chosen = await choose();
  const byProcess = chosen?.later.map(({ pid, pieces }) => [pid, pieces.map(({ from }) => from)] as const);
  expect(new Map(byProcess)).toEqual(
    new Map([
      [2, [1024 * MiB]],
      [4, [159 * MiB]],
    ]),
  );
});

test('memory that a child must find empty comes at once', async () => {
  const pieces = [
    { at: 32 * MiB, bytes: 40 * MiB },
    { at: 100 * MiB, bytes: 40 * MiB },
  ];
  const wipeOnFork = 1 << 18;
  listOf(2, pieces, 2, [
    { at: 32 * MiB, bytes: 40 * MiB, advice: 1 << 10 },
    { at: 139 * MiB, bytes: 2 * MiB, advice: wipeOnFork | (1 << 10) },
  ]);
  expect((await choose())?.later.map(({ pieces }) => pieces.map(({ from }) => from))).toEqual([[32 * MiB]]);
});

test.each([
  ['little memory', [{ at: MiB, bytes: 31 * MiB }], plenty],
  ['memory that would not be there twice', [{ at: MiB, bytes: 40 * MiB }], { ...plenty, bytesMax: 79 * MiB }],
  ['small pieces', Array.from({ length: 80 }, (_, index) => ({ at: 2 * index * MiB, bytes: MiB / 2 })), plenty],
  ['long lists', Array.from({ length: 20_000 }, (_, index) => ({ at: 2 * index * MiB, bytes: MiB })), plenty],
])('%s comes at once, and nothing is changed', async (_what, pieces, options) => {
  listOf(5, pieces);
  expect(await choose(options)).toBeNull();
  expect(statSync(join(links(), 'pagemap-5.img')).ino).toBe(statSync(join(snapshot(), 'pagemap-5.img')).ino);
});

test('if it is not known which memory a process has, all comes at once', async () => {
  listOf(5, [{ at: MiB, bytes: 40 * MiB }]);
  rmSync(join(snapshot(), 'mm-5.img'));
  expect(await choose()).toBeNull();
});

test('if there are very many mappings, all comes at once', async () => {
  const mappings = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ at: 2 * index * MiB, bytes: MiB }));
  listOf(5, [{ at: MiB, bytes: 40 * MiB }]);
  mappingsOf(5, mappings(40_000));
  expect(await choose()).toBeNull();
  mappingsOf(5, mappings(10_000));
  expect(await choose()).not.toBeNull();
});

test('as much as is there twice below the limit comes later', async () => {
  listOf(5, [{ at: MiB, bytes: 40 * MiB }]);
  expect((await choose({ ...plenty, bytesMax: 80 * MiB }))?.later).toHaveLength(1);
});

test('pages of an earlier CRIU’s lists are counted, shared memory’s lists are not looked at', async () => {
  const fields = [number(1, MiB), number(2, (40 * MiB) / 4096), number(4, present | mayBeLater)];
  const messages = [[number(1, 1)], fields].map(message => encodeFields(message));
  const parts = messages.flatMap(message => [new Uint8Array(new Uint32Array([message.length]).buffer), message]);
  mappingsOf(1, []);
  pagesOf(1, 64 * MiB);
  for (const name of ['pagemap-1.img', 'pagemap-shmem-5.img']) {
    writeFileSync(join(snapshot(), name), Buffer.concat([Buffer.from('magic..!'), ...parts]));
    linkSync(join(snapshot(), name), join(links(), name));
  }
  expect((await choose())?.later.map(({ file }) => file)).toEqual(['pages-1.img']);
});
