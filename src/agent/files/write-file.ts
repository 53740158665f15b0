import { constants } from 'node:fs';
import { open, statfs, type FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Agent } from '../agent.ts';
import { makeParents } from '../filesystem/directories.ts';
import { fileError } from '../filesystem/errno.ts';
import { readMetadata, replaceMetadata, type Metadata } from '../filesystem/metadata.ts';
import type { User } from '../sandbox/users.ts';
import { refuseOwn } from './own-file.ts';
import { unsuitable } from './request.ts';

/** A written file, as the answer describes it. */
export type WrittenFile = { path: string; name: string; type: 'file'; metadata?: Metadata };

/** A file being written. Call exactly one of `finish` and `abandon`. */
export type FileWriter = {
  write(bytes: Uint8Array): Promise<void>;
  finish(): Promise<WrittenFile>;
  /** Closes the file with what has been written so far. */
  abandon(): Promise<void>;
};

const bufferBytes = 256 << 10;

/**
 * Opens `path` for writing, empty and owned by `user`; creates missing directories above it. An existing file keeps its
 * inode, so that whoever has it open sees the new content. Errors: `invalid` for directories and special files,
 * `no_space`.
 */
export async function openWriter(
  agent: Pick<Agent, 'native' | 'journal'>,
  path: string,
  user: User,
  metadata: Metadata,
): Promise<FileWriter> {
  let file: FileHandle;
  try {
    await makeParents(path, user);
    // Opened for writing only: a pipe without a reader fails instead of making us wait for one.
    file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NONBLOCK | constants.O_NOCTTY, 0o666);
  } catch (error) {
    throw fileError(error, path, { EISDIR: 'invalid', ENXIO: 'invalid', ENOTDIR: 'invalid', ELOOP: 'invalid' });
  }
  try {
    refuseOwn(file, path);
    const facts = await file.stat();
    if (!facts.isFile()) throw unsuitable(path, 'not a regular file');
    // Watchers of the file see each of these calls, so each is made only if it changes something.
    if (facts.size > 0) await file.truncate(0);
    if (facts.uid !== user.uid || facts.gid !== user.gid) await file.chown(user.uid, user.gid);
  } catch (error) {
    await file.close();
    throw fileError(error, path);
  }
  return writerOf(agent, file, path, metadata);
}

function writerOf(
  agent: Pick<Agent, 'native' | 'journal'>,
  file: FileHandle,
  path: string,
  metadata: Metadata,
): FileWriter {
  const sink = Bun.file(file.fd).writer({ highWaterMark: bufferBytes });
  let bytesWritten = 0;
  // The sink both throws and rejects.
  const translated = async (work: () => unknown): Promise<void> => {
    try {
      await work();
    } catch (error) {
      throw fileError(error, path, (await isOfProc(file)) ? { EIO: 'forbidden' } : {});
    }
  };
  return {
    async write(bytes) {
      bytesWritten += bytes.length;
      await translated(() => sink.write(bytes));
    },
    async finish() {
      try {
        await translated(() => sink.end());
        replaceMetadata(agent.native, file.fd, metadata);
        agent.journal.add('info', 'filesystem', `wrote ${path}`, { event: 'write', path, bytes: String(bytesWritten) });
        const stored = readMetadata(agent.native, file.fd);
        return { path, name: basename(path), type: 'file', ...(stored && { metadata: stored }) };
      } finally {
        await file.close();
      }
    },
    async abandon() {
      await translated(() => sink.end()).catch(() => {});
      await file.close();
    },
  };
}

// Magic number of statfs(2).
const procType = 0x9fa0;

/** Files of proc answer EIO if they accept no writes; on a disk, EIO means that the disk fails. */
async function isOfProc(file: FileHandle): Promise<boolean> {
  const { type } = await statfs(`/proc/self/fd/${file.fd}`);
  return type === procType;
}
