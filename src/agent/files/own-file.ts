import { readFileSync, readlinkSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { unsuitable } from './request.ts';

/**
 * Refuses (`invalid`) open files that belong to the agent or to process 1: their /proc directories, those of each of
 * their threads, and their state with the sandbox's tokens. /proc/self, /dev/fd and links lead to these, so only the
 * open file shows where it really is. What /proc/net leads to belongs to the whole sandbox, and every process there may
 * read it.
 */
export function refuseOwn(file: FileHandle, path: string): void {
  const place = readlinkSync(`/proc/self/fd/${file.fd}`);
  const ownMemory = place.startsWith('/memfd:');
  const [, id] = /^\/proc\/(\d+)\/(?!net\/)/.exec(place) ?? [];
  if (ownMemory || (id !== undefined && [1, process.pid].includes(processOf(Number(id)))))
    throw unsuitable(path, 'of the agent');
}

/** The process of a thread. A process is its first thread, and /proc lists only that one. */
function processOf(thread: number): number {
  try {
    return Number(/^Tgid:\t(\d+)$/m.exec(readFileSync(`/proc/${thread}/status`, 'utf8'))?.[1]);
  } catch {
    return thread; // it has ended
  }
}
