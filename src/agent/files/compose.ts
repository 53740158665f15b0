import { constants } from 'node:fs';
import { lstat, open, rename, rm, stat, unlink, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { randomName } from '../../base/id.ts';
import type { Agent } from '../agent.ts';
import { json } from '../answer.ts';
import { readBounded } from '../bounded-body.ts';
import { parseJson } from '../connect/envelope.ts';
import { asMessage, stringField, stringsField } from '../connect/message.ts';
import { makeParents } from '../filesystem/directories.ts';
import { fileError } from '../filesystem/errno.ts';
import { resolvePath } from '../sandbox/paths.ts';
import { findUser, type User } from '../sandbox/users.ts';
import { refuseOwn } from './own-file.ts';
import { unsuitable } from './request.ts';

const bodyBytesMax = 4 << 20;
const pieceBytes = 1 << 20;

/**
 * `POST /files/compose`: joins several files, in order, into one and removes them. It replaces the destination in one
 * step: readers see either the old or the new content, whole.
 */
export async function compose(agent: Pick<Agent, 'settings' | 'journal'>, request: Request): Promise<Response> {
  const { defaultUser, defaultWorkdir } = agent.settings();
  const body = asMessage(parseJson(await readBounded(request, bodyBytesMax)), 'the body');
  const user = findUser(stringField(body, 'username') || defaultUser);
  const named = stringsField(body, 'sourcePaths');
  if (named.length === 0) throw new AtollError('invalid', 'source_paths must name at least one file');
  const wanted = stringField(body, 'destination');
  if (!wanted) throw new AtollError('invalid', 'destination must be a path');
  const destination = resolvePath(wanted, user, defaultWorkdir);
  const sources = named.map(path => resolvePath(path, user, defaultWorkdir));
  await checkSources(sources, destination);
  await concatenate(sources, destination, user);
  for (const source of new Set(sources)) await unlink(source).catch(error => Promise.reject(fileError(error, source)));
  agent.journal.add('info', 'filesystem', `composed ${destination}`, {
    event: 'write',
    path: destination,
    sources: String(sources.length),
  });
  return json({ path: destination, name: basename(destination), type: 'file' });
}

async function checkSources(sources: string[], destination: string): Promise<void> {
  const target = await stat(destination).catch(() => undefined);
  if (target?.isDirectory()) throw unsuitable(destination, 'a directory');
  for (const source of sources) {
    const facts = await lstat(source).catch(error => Promise.reject(fileError(error, source)));
    if (!facts.isFile()) throw unsuitable(source, 'not a regular file');
    if (source === destination || (target && facts.dev === target.dev && facts.ino === target.ino))
      throw unsuitable(source, 'both a source and the destination');
  }
}

async function concatenate(sources: string[], destination: string, user: User): Promise<void> {
  // Without the file's name: the name may leave no room for more bytes.
  const temporary = join(dirname(destination), `.compose-${randomName(12)}`);
  try {
    await makeParents(destination, user);
    const into = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o666);
    try {
      for (const source of sources) await append(source, into);
      await into.chown(user.uid, user.gid);
    } finally {
      await into.close();
    }
    await rename(temporary, destination);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}); // the earlier failure says more
    throw fileError(error, destination, { ENOTDIR: 'invalid', EISDIR: 'invalid' });
  }
}

async function append(source: string, into: FileHandle): Promise<void> {
  const from = await open(source, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW).catch(error =>
    Promise.reject(fileError(error, source)),
  );
  try {
    refuseOwn(from, source);
    const bytes = new Uint8Array(pieceBytes);
    for (;;) {
      const { bytesRead } = await from.read(bytes, 0, pieceBytes, null);
      if (bytesRead === 0) return;
      for (let at = 0; at < bytesRead;) at += (await into.write(bytes, at, bytesRead - at, null)).bytesWritten;
    }
  } finally {
    await from.close();
  }
}
