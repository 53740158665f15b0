import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AtollError, systemCodeOf } from '../../../base/error.ts';
import { freeBytesOf, requireRoom } from '../../../base/disk-room.ts';
import { newUuid } from '../../../base/id.ts';
import { deriveToken, secretsEqual } from '../../../base/crypto/secret.ts';
import { findOwnTemplateById } from './find.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { SharedUploads } from '../../blob/rules/uploads.ts';
import type { Uploads } from './uploads.ts';
import type { Db } from '../../database/db.ts';
import type { Clock } from '../../../base/clock.ts';

/** Dependencies of offering an upload. */
export type OfferDeps = {
  clock: Clock;
  db: Db;
  filesDir: string;
  seed: Uint8Array;
  sharedUploads: SharedUploads | null;
};

/** Dependencies of receiving an upload. */
export type UploadDeps = {
  clock: Clock;
  diskReserveBytes: number;
  filesDir: string;
  seed: Uint8Array;
  /** Null: archives are on this machine alone. */
  sharedUploads: SharedUploads | null;
  uploads: Uploads;
};

/** How long after its offer an upload may begin. */
const uploadSeconds = 30 * 60;
/** Bytes of one archive. */
const uploadBytesMax = 4 * 2 ** 30;

/** Bytes and number of all archives of a team. */
const teamBytesMax = 10 * 2 ** 30;
const teamFilesMax = 2_000;
/** How long after its last use an archive may be about to be used in a build. */
const inUseMs = 60 * 60_000;

/** Whether files are there already, and the path that takes them. */
type UploadSlot = { present: boolean; path: string };

/**
 * Where the team's files with this hash go: a path with a signature in place of the credential. Throws `invalid`,
 * `not_found`.
 */
export async function offerUpload(
  { clock, db, filesDir, seed, sharedUploads }: OfferDeps,
  team: TeamRecord,
  templateId: string,
  hash: string,
): Promise<UploadSlot> {
  await findOwnTemplateById(db, team, templateId);
  if (!/^[0-9a-f]{64}$/.test(hash)) throw new AtollError('invalid', 'hash: must be 64 lower-case hex digits');
  const file = fileOf(filesDir, team.teamId, hash);
  const present = sharedUploads ? await sharedUploads.has({ teamId: team.teamId, hash }) : await touch(file);
  const expires = Math.floor(clock() / microsPerSecond) + uploadSeconds;
  const signature = signatureOf(seed, team.teamId, hash, expires);
  return { present, path: `/template-files/${team.teamId}/${hash}?expires=${expires}&signature=${signature}` };
}

/** An upload as its URL names it; `expires` in Unix seconds. */
type Upload = { teamId: string; hash: string; expires: number; signature: string };

/**
 * Receives an archive as soon as there is a place for it. It appears whole or not at all. Throws `unauthenticated`,
 * `too_large`, `invalid`, `no_space`, `rate_limited`, and `canceled` when the client leaves before its turn.
 */
export async function takeUpload(
  deps: UploadDeps,
  upload: Upload,
  { stream, length }: { stream: ReadableStream<Uint8Array> | null; length: number | null },
  signal: AbortSignal,
): Promise<void> {
  const { teamId, hash, expires, signature } = upload;
  if (!secretsEqual(signature, signatureOf(deps.seed, teamId, hash, expires)))
    throw new AtollError('unauthenticated', 'signature: is not valid for this upload');
  if (expires < deps.clock() / microsPerSecond)
    throw new AtollError('unauthenticated', 'The upload was offered too long ago: ask for a new URL');
  if (length !== null && length > uploadBytesMax)
    throw new AtollError('too_large', `The files are larger than ${uploadBytesMax / 2 ** 30} GiB`);
  using _place = await deps.uploads.begin(teamId, signal);
  const file = fileOf(deps.filesDir, teamId, hash);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  requireUploadRoom(deps, length ?? 0);
  const requireOwnShare = (bytes: number) =>
    requireShare(deps.sharedUploads, { directory: dirname(file), teamId, bytes });
  await requireOwnShare(length ?? 0);
  const temporary = `${file}.${newUuid()}`;
  try {
    const written = await store(deps, temporary, stream, () => requireOwnShare(0));
    if (length !== null && written !== length)
      throw new AtollError('invalid', 'The upload ended too early: send it again');
    if (deps.sharedUploads) await deps.sharedUploads.keep({ teamId, hash }, { path: temporary, sizeBytes: written });
    else await rename(temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Whether a file is there. Asking for it keeps it for longer. */
async function touch(file: string): Promise<boolean> {
  try {
    await utimes(file, new Date(), new Date());
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Bytes between two checks of the remaining room. */
const roomEveryBytes = 16 * 2 ** 20;

function requireUploadRoom(
  { diskReserveBytes, filesDir }: { diskReserveBytes: number; filesDir: string },
  bytes: number,
): void {
  requireRoom('the files', { freeBytes: freeBytesOf(filesDir), reserveBytes: diskReserveBytes, bytes });
}

/**
 * Keeps a team's archives within its share: the least recently used make room, unless somebody may be about to build
 * with them. Throws `no_space` with the figures.
 */
async function requireShare(
  shared: SharedUploads | null,
  { directory, teamId, bytes }: { directory: string; teamId: string; bytes: number },
): Promise<void> {
  const names = await readdir(directory);
  const found = await Promise.all(
    names.map(async name => ({
      path: join(directory, name),
      stats: await stat(join(directory, name)).catch(() => undefined),
    })),
  );
  const here = found.flatMap(({ path, stats }) => {
    const remove = () => rm(path, { force: true });
    return stats ? [{ sizeBytes: stats.size, usedMs: stats.mtimeMs, remove }] : [];
  });
  const files = [...here, ...((await shared?.ofTeam(teamId)) ?? [])].sort((a, b) => a.usedMs - b.usedMs);
  let used = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, bytes);
  let count = files.length;
  for (const { sizeBytes, usedMs, remove } of files) {
    if (used <= teamBytesMax && count < teamFilesMax) return;
    if (Date.now() - usedMs < inUseMs) break;
    await remove();
    used -= sizeBytes;
    count--;
  }
  if (used <= teamBytesMax && count < teamFilesMax) return;
  throw new AtollError(
    'no_space',
    `The team’s uploaded archives are ${count} of ${(used / 2 ** 30).toFixed(1)} GiB, and may be ${teamFilesMax} ` +
      `of ${teamBytesMax / 2 ** 30} GiB: wait until those of the last hour are built with`,
  );
}

async function store(
  deps: { diskReserveBytes: number; filesDir: string },
  path: string,
  body: ReadableStream<Uint8Array> | null,
  requireOwnShare: () => Promise<void>,
): Promise<number> {
  await using file = await open(path, 'wx', 0o600);
  let written = 0;
  let looked = 0;
  for await (const part of body ?? []) {
    written += part.length;
    if (written > uploadBytesMax)
      throw new AtollError('too_large', `The files are larger than ${uploadBytesMax / 2 ** 30} GiB`);
    if (written - looked > roomEveryBytes) {
      requireUploadRoom(deps, 0);
      await requireOwnShare();
      looked = written;
    }
    for (let done = 0; done < part.length;) done += (await file.write(part, done)).bytesWritten;
  }
  // Runs on another thread: on a slow disk it takes a minute.
  await file.sync();
  return written;
}

function signatureOf(seed: Uint8Array, teamId: string, hash: string, expires: number): string {
  return deriveToken(seed, `template-files:${teamId}:${hash}:${expires}`);
}

function fileOf(filesDir: string, teamId: string, hash: string): string {
  return join(filesDir, teamId, hash);
}
