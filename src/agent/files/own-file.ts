import { readFileSync, readlinkSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { unsuitable } from './request.ts';

/**
 * Refuses (`invalid`) open files of the agent's own and of process 1: their /proc directories, those of each of their
 * threads, and their state with the sandbox's tokens. /proc/self, /dev/fd and links lead there; only the open file
 * shows its place. What /proc/net leads to is of the whole sandbox, and every process there may read it.
 */
export function refuseOwn(file: FileHandle, path: string): void {
  const place = readlinkSync(`/proc/self/fd/${file.fd}`);
  const ownMemory = place.startsWith('/memfd:');
  const [, id] = /^\/proc\/(\d+)\/(?!net\/)/.exec(place) ?? [];
  if (ownMemory || (id !== undefined && [1, process.pid].includes(processOf(Number(id)))))
    throw unsuitable(path, 'of the agent');
}

/** The process that a thread is of. A process is its first thread, and only that one is listed in /proc. */
function processOf(thread: number): number {
  try {
    return Number(/^Tgid:\t(\d+)$/m.exec(readFileSync(`/proc/${thread}/status`, 'utf8'))?.[1]);
  } catch {
    return thread; // it has ended
  }
}
