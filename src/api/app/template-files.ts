import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AtollError, systemCodeOf } from '../../base/error.ts';
import { freeBytesOf, requireRoom } from '../../base/disk-room.ts';
import { newUuid } from '../../base/id.ts';
import { deriveToken, secretsEqual } from '../../base/secret.ts';
import type { TeamRecord } from '../store/team.ts';
import { findOwnTemplateById } from './build-find.ts';
import { microsPerSecond } from './clock.ts';
import type { App } from './context.ts';

/** How long an upload may be begun after it was offered. */
const uploadSeconds = 30 * 60;
/** Of one archive. */
export const uploadBytesMax = 4 * 2 ** 30;

/** Of all archives of a team together, and how many. */
const teamBytesMax = 10 * 2 ** 30;
const teamFilesMax = 2_000;
/** For so long after its last use an archive may be about to be built with. */
const inUseMs = 60 * 60_000;

export type UploadSlot = { present: boolean; path: string };

/** Where the team's files with this hash go: a path with a signature that stands for the credential. Throws `invalid`, `not_found`. */
export async function offerUpload(app: App, team: TeamRecord, templateId: string, hash: string): Promise<UploadSlot> {
  await findOwnTemplateById(app, team, templateId);
  if (!/^[0-9a-f]{64}$/.test(hash)) throw new AtollError('invalid', 'hash: must be 64 lower-case hex digits');
  const file = fileOf(app, team.teamId, hash);
  const present = await touch(file);
  const expires = Math.floor(app.clock() / microsPerSecond) + uploadSeconds;
  const signature = signatureOf(app, team.teamId, hash, expires);
  return { present, path: `/template-files/${team.teamId}/${hash}?expires=${expires}&signature=${signature}` };
}

export type Upload = { teamId: string; hash: string; expires: number; signature: string };

/** Takes an archive. It is there whole or not at all. Throws `unauthenticated`, `too_large`, `invalid`, `no_space`. */
export async function takeUpload(app: App, upload: Upload, body: ReadableStream<Uint8Array> | null, length: number | null): Promise<void> {
  const { teamId, hash, expires, signature } = upload;
  if (!secretsEqual(signature, signatureOf(app, teamId, hash, expires))) throw new AtollError('unauthenticated', 'signature: is not valid for this upload');
  if (expires < app.clock() / microsPerSecond) throw new AtollError('unauthenticated', 'The upload was offered too long ago: ask for a new URL');
  if (length !== null && length > uploadBytesMax) throw new AtollError('too_large', `The files are larger than ${uploadBytesMax / 2 ** 30} GiB`);
  using _place = app.uploads.begin(teamId);
  const file = fileOf(app, teamId, hash);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  requireUploadRoom(app, length ?? 0);
  await requireShare(dirname(file), length ?? 0);
  const temporary = `${file}.${newUuid()}`;
  try {
    const written = await store(app, temporary, body, () => requireShare(dirname(file), 0));
    if (length !== null && written !== length) throw new AtollError('invalid', 'The upload ended too early: send it again');
    await rename(temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Whether a file is there. One that is still asked for is kept for longer. */
async function touch(file: string): Promise<boolean> {
  try {
    await utimes(file, new Date(), new Date());
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Bytes between two looks at the room that is left. */
const roomEveryBytes = 16 * 2 ** 20;

function requireUploadRoom(app: App, bytes: number): void {
  requireRoom('the files', { freeBytes: freeBytesOf(app.filesDir), reserveBytes: app.diskReserveBytes, bytes });
}

/** Keeps a team's archives within its share: the least used make room, as long as nobody can be about to build with them. Throws `no_space` with the figures. */
async function requireShare(directory: string, bytes: number): Promise<void> {
  const names = await readdir(directory);
  const found = await Promise.all(names.map(async name => ({ path: join(directory, name), stats: await stat(join(directory, name)).catch(() => undefined) })));
  const files = found.flatMap(({ path, stats }) => (stats ? [{ path, size: stats.size, usedMs: stats.mtimeMs }] : [])).sort((a, b) => a.usedMs - b.usedMs);
  let used = files.reduce((sum, { size }) => sum + size, bytes);
  let count = files.length;
  for (const { path, size, usedMs } of files) {
    if (used <= teamBytesMax && count < teamFilesMax) return;
    if (Date.now() - usedMs < inUseMs) break;
    await rm(path, { force: true });
    used -= size;
    count--;
  }
  if (used <= teamBytesMax && count < teamFilesMax) return;
  throw new AtollError('no_space', `The team’s uploaded archives are ${count} of ${(used / 2 ** 30).toFixed(1)} GiB, and may be ${teamFilesMax} of ${teamBytesMax / 2 ** 30} GiB: wait until those of the last hour are built with`);
}

async function store(app: App, path: string, body: ReadableStream<Uint8Array> | null, requireOwnShare: () => Promise<void>): Promise<number> {
  await using file = await open(path, 'wx', 0o600);
  let written = 0;
  let looked = 0;
  for await (const part of body ?? []) {
    written += part.length;
    if (written > uploadBytesMax) throw new AtollError('too_large', `The files are larger than ${uploadBytesMax / 2 ** 30} GiB`);
    if (written - looked > roomEveryBytes) {
      requireUploadRoom(app, 0);
      await requireOwnShare();
      looked = written;
    }
    for (let done = 0; done < part.length; ) done += (await file.write(part, done)).bytesWritten;
  }
  // On another thread: on a slow disk it takes a minute.
  await file.sync();
  return written;
}

function signatureOf(app: App, teamId: string, hash: string, expires: number): string {
  return deriveToken(app.seed, `template-files:${teamId}:${hash}:${expires}`);
}

function fileOf(app: App, teamId: string, hash: string): string {
  return join(app.filesDir, teamId, hash);
}
