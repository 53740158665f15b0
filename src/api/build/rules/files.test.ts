import { afterAll, beforeEach, expect, test } from 'bun:test';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UploadRef } from '../../../protocol/upload.ts';
import type { SharedUploads } from '../../blob/rules/uploads.ts';
import { openStore } from '../../database/database.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { insertTemplate } from '../../template/store/write.ts';
import { offerUpload, takeUpload, type UploadDeps } from './files.ts';
import { Uploads } from './uploads.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
const filesDir = mkdtempSync(join(tmpdir(), 'atoll-files-'));
afterAll(async () => {
  await store[Symbol.asyncDispose]();
  rmSync(filesDir, { recursive: true, force: true });
});
const nowSeconds = 1_700_000_000;
const clock = () => nowSeconds * 1e6;
const seed = new Uint8Array(32).fill(1);
const [mine, theirs] = [
  await createTeam({ db, clock }, { name: 'M', slug: 'm' }),
  await createTeam({ db, clock }, { name: 'T', slug: 't' }),
];
for (const [templateId, { teamId }, isPublic] of [
  ['own', mine, false],
  ['foreign', theirs, false],
  ['public', theirs, true],
] as const)
  await insertTemplate(db, { templateId, teamId, kind: 'template', public: isPublic, nowUs: 1 });

const own = join(filesDir, mine.teamId);
beforeEach(() => rmSync(own, { recursive: true, force: true }));
const hash = 'a'.repeat(64);
const gib = 2 ** 30;

const offer = (changed: { hash?: string; templateId?: string; sharedUploads?: SharedUploads } = {}) =>
  offerUpload(
    { clock, db, filesDir, seed, sharedUploads: changed.sharedUploads ?? null },
    mine,
    changed.templateId ?? 'own',
    changed.hash ?? hash,
  );

/** The contents of an offer's URL. */
async function offered() {
  const { searchParams } = new URL((await offer()).path, 'http://api');
  const [expires, signature] = [Number(searchParams.get('expires')), searchParams.get('signature') ?? ''];
  return { teamId: mine.teamId, hash, expires, signature };
}

type Body = { stream: ReadableStream<Uint8Array> | null; length: number | null };
type Changed = Partial<UploadDeps> & { upload?: object; signal?: AbortSignal };

async function take(body: Partial<Body>, changed: Changed = {}): Promise<void> {
  const deps = { clock, filesDir, seed, diskReserveBytes: 0, sharedUploads: null, uploads: new Uploads() };
  const { upload = {}, signal = new AbortController().signal } = changed;
  await takeUpload(
    // Copied with their getters: what is computed at each access stays so.
    Object.defineProperties(deps, Object.getOwnPropertyDescriptors(changed)) as UploadDeps,
    { ...(await offered()), ...upload },
    { stream: null, length: null, ...body },
    signal,
  );
}

const streamOf = (...parts: (string | Uint8Array)[]) =>
  new ReadableStream<Uint8Array>({
    pull(controller) {
      const part = parts.shift();
      if (part === undefined) controller.close();
      else controller.enqueue(new Uint8Array(Buffer.from(part as string)));
    },
  });
const files = () => readdirSync(own);

/** A file of the team with a size that it does not take on the disk, last used that many seconds ago. */
function archive(name: string, bytes: number, agoSeconds: number): void {
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, name), '');
  truncateSync(join(own, name), bytes);
  const used = Date.now() / 1000 - agoSeconds;
  utimesSync(join(own, name), used, used);
}

test('an upload is offered for half an hour, for files of the team’s own template', async () => {
  const { present, path } = await offer();
  expect(present).toBe(false);
  expect(path).toStartWith(`/template-files/${mine.teamId}/${hash}?expires=${nowSeconds + 1800}&signature=`);
  for (const wrong of ['', 'a'.repeat(63), 'A'.repeat(64), `${hash}/`])
    await expect(offer({ hash: wrong })).rejects.toMatchObject({ code: 'invalid' });
  await expect(offer({ templateId: 'foreign' })).rejects.toMatchObject({ code: 'not_found' });
  await expect(offer({ templateId: 'public' })).rejects.toMatchObject({ code: 'forbidden' });
});

test('files that are there need not be sent, and are kept for longer', async () => {
  archive(hash, 5, 7200);
  expect((await offer()).present).toBe(true);
  expect(Date.now() - statSync(join(own, hash)).mtimeMs).toBeLessThan(3_600_000);
  const asked: UploadRef[] = [];
  const sharedUploads = { has: async (upload: UploadRef) => (asked.push(upload), false) } as unknown as SharedUploads;
  expect((await offer({ sharedUploads })).present).toBe(false);
  expect(asked).toEqual([{ teamId: mine.teamId, hash }]);
  // The caller is not told to send files where that can't be determined.
  rmSync(own, { recursive: true });
  writeFileSync(own, 'no folder');
  await expect(offer()).rejects.toMatchObject({ code: 'ENOTDIR' });
});

test('an upload is there whole, and only under its name', async () => {
  for (const [body, content] of [
    [{ stream: streamOf('one ', 'three'), length: 9 }, 'one three'],
    [{ stream: streamOf('again') }, 'again'],
    [{}, ''],
  ] as const) {
    await take(body);
    expect(files()).toEqual([hash]);
    expect(readFileSync(join(own, hash), 'utf8')).toBe(content);
  }
  expect([statSync(join(own, hash)).mode & 0o777, statSync(own).mode & 0o777]).toEqual([0o600, 0o700]);
});

test('an upload that was not offered, or too long ago, is refused', async () => {
  const refused = (says: string) => ({ code: 'unauthenticated', message: expect.stringContaining(says) });
  for (const upload of [
    { signature: 'x' },
    { hash: 'b'.repeat(64) },
    { expires: nowSeconds + 9999 },
    { teamId: 'other' },
  ])
    await expect(take({}, { upload })).rejects.toMatchObject(refused('signature: is not valid'));
  const late = (afterSeconds: number) => ({ clock: () => (nowSeconds + afterSeconds) * 1e6 });
  await take({}, late(1800));
  await expect(take({}, late(1800.5))).rejects.toMatchObject(refused('offered too long ago'));
});

test('an upload that ends too early, or breaks off, leaves nothing', async () => {
  await expect(take({ stream: streamOf('short'), length: 6 })).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('ended too early'),
  });
  const broken = new ReadableStream<Uint8Array>({
    pull: controller => controller.error(new Error('the client is gone')),
  });
  await expect(take({ stream: broken })).rejects.toThrow('the client is gone');
  expect(files()).toEqual([]);
});

test('an archive has four GiB at most', async () => {
  await expect(take({ length: 4 * gib + 1 })).rejects.toMatchObject({ code: 'too_large' });
  await expect(take({ length: 4 * gib })).rejects.toMatchObject({ code: 'invalid' });
});

test('room on the disk is checked before the upload, and during it', async () => {
  const none = { diskReserveBytes: Number.MAX_SAFE_INTEGER };
  const noSpace = { code: 'no_space', message: expect.stringContaining("no room on the platform's disk") };
  let wasRead = false;
  const stream = new ReadableStream<Uint8Array>({ pull: () => void (wasRead = true) }, { highWaterMark: 0 });
  await expect(take({ stream }, none)).rejects.toMatchObject(noSpace);
  expect(wasRead).toBe(false);
  let looks = 0;
  const filling = {
    get diskReserveBytes() {
      return looks++ === 0 ? 0 : Number.MAX_SAFE_INTEGER;
    },
  };
  // The room is not checked again for as much.
  const mib = new Uint8Array(2 ** 20);
  await take({ stream: streamOf(...Array.from({ length: 16 }, () => mib)) }, filling);
  expect(looks).toBe(1);
  looks = 0;
  await expect(take({ stream: streamOf(...Array.from({ length: 17 }, () => mib)) }, filling)).rejects.toMatchObject(
    noSpace,
  );
  expect(files()).toEqual([hash]);
  // It is checked again after as much: at 17 MiB and at 34.
  const looking = {
    get diskReserveBytes() {
      looks++;
      return 0;
    },
  };
  looks = 0;
  await take({ stream: streamOf(...Array.from({ length: 40 }, () => mib)) }, looking);
  expect(looks).toBe(3);
});

test('a team’s archives make room, the least used first, except those of the last hour', async () => {
  archive('oldest', 4 * gib, 7203);
  archive('older', 3 * gib, 7202);
  archive('old', 2 * gib, 7201);
  archive('new', gib, 10);
  // They make up ten GiB, all that a team may have.
  await take({ stream: streamOf('x') });
  expect(files().toSorted()).toEqual([hash, 'new', 'old', 'older', 'oldest'].toSorted());
  rmSync(join(own, hash));
  await take({ stream: streamOf('x'), length: 1 });
  expect(files().toSorted()).toEqual([hash, 'new', 'old', 'older'].toSorted());
  archive('now', 9 * gib, 3_500);
  await expect(take({ length: 1 })).rejects.toMatchObject({
    code: 'no_space',
    message: expect.stringContaining(`are 3 of 10.0 GiB, and may be 2000 of 10 GiB`),
  });
  // The old files had to go all the same.
  expect(files().toSorted()).toEqual([hash, 'new', 'now'].toSorted());
  archive('now', 9 * gib, 3_601);
  await take({ stream: streamOf('x'), length: 1 });
  expect(files().toSorted()).toEqual([hash, 'new'].toSorted());
});

test('a team has two thousand archives at most', async () => {
  const numbered = (begin: string, agoSeconds: number) => {
    for (let number = files().length; number < 2000; number++) archive(`${begin}${number}`, 0, agoSeconds);
  };
  await take({ stream: streamOf('x') });
  numbered('old', 7200);
  await take({ stream: streamOf('y') });
  // One made room for it, and one for its draft.
  expect(files().length).toBeLessThan(2000);
  numbered('new', 10);
  for (const name of files()) utimesSync(join(own, name), Date.now() / 1000, Date.now() / 1000);
  await expect(take({ stream: streamOf('x') })).rejects.toMatchObject({ code: 'no_space' });
});

test('a team’s share is checked during an upload, and in a cluster in the store too', async () => {
  const parts = Array.from({ length: 18 }, () => new Uint8Array(2 ** 20));
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const part = parts.shift();
      if (parts.length === 4) archive('meanwhile', 10 * gib, 5);
      if (part) controller.enqueue(part);
      else controller.close();
    },
  });
  await expect(take({ stream })).rejects.toMatchObject({ code: 'no_space' });
  rmSync(own, { recursive: true });

  const removed: string[] = [];
  const stored = (name: string, usedMs: number) => ({
    ...{ sizeBytes: 6 * gib, usedMs, remove: async () => void removed.push(name) },
  });
  const kept: unknown[] = [];
  const sharedUploads = {
    ofTeam: async (teamId: string) => (expect(teamId).toBe(mine.teamId), [stored('new', 2000), stored('old', 1000)]),
    async keep(upload: UploadRef, { path, sizeBytes }: { path: string; sizeBytes: number }) {
      kept.push(upload, readFileSync(path, 'utf8'), sizeBytes);
    },
  } as unknown as SharedUploads;
  await take({ stream: streamOf('shared') }, { sharedUploads });
  expect(removed).toEqual(['old']);
  expect(kept).toEqual([{ teamId: mine.teamId, hash }, 'shared', 6]);
  // All have it: this process no longer needs it.
  expect(files()).toEqual([]);
});

test('an upload waits for its place, and gives it back', async () => {
  const uploads = new Uploads(1, { atOnceMax: 1, perTeamMax: 1, waitingMax: 9, waitingPerTeamMax: 9 });
  await expect(take({ length: 1 }, { uploads })).rejects.toMatchObject({ code: 'invalid' });
  await take({}, { uploads });
  using _place = await uploads.begin('other', new AbortController().signal);
  await expect(take({}, { uploads })).rejects.toMatchObject({ code: 'rate_limited' });
  await expect(take({}, { uploads, signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'canceled' });
});
