import { accessSync, constants, statSync, statfsSync } from 'node:fs';
import { release } from 'node:os';
import { dirname, join } from 'node:path';
import { systemCodeOf } from '../../base/error.ts';

/** Facts of a machine that a start depends on. Tests pretend others. */
export type HostFacts = {
  /** As Node.js names them: `linux`, `x64`. */
  system: string;
  architecture: string;
  kernel: string;
  userId: number;
  hasProgram(name: string): boolean;
  /** What is at a path; undefined if nothing is. */
  placeOf(path: string): Place | undefined;
  /** Type of the file system that holds a path or, if nothing is there yet, its nearest folder (statfs(2), f_type). */
  fileSystemOf(path: string): bigint;
  /** Whether its file system, or that of its nearest folder, is mounted read-only. */
  isReadOnly(path: string): boolean;
  /** Bytes that can still be written there. */
  freeBytesOf(path: string): number;
};

/** A file or folder, and its owner. */
type Place = { isDirectory: boolean; ownerId: number };

/** The facts of this machine, each read on demand. `searchPath`: the PATH of the programs that are started. */
export function hostFacts(searchPath: string): HostFacts {
  return {
    system: process.platform,
    architecture: process.arch,
    kernel: release(),
    userId: process.getuid?.() ?? 0,
    hasProgram: name => searchPath.split(':').some(folder => isExecutable(join(folder, name))),
    placeOf: path => placeOf(path),
    fileSystemOf: path => statfsSync(nearest(path), { bigint: true }).type,
    isReadOnly: path => isReadOnly(nearest(path)),
    freeBytesOf(path) {
      const { bavail, bsize } = statfsSync(nearest(path));
      return bavail * bsize;
    },
  };
}

function placeOf(path: string): Place | undefined {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat && { isDirectory: stat.isDirectory(), ownerId: stat.uid };
  } catch (error) {
    if (systemCodeOf(error) === 'ENOTDIR') return undefined; // a file is above it
    throw error;
  }
}

/** `path`, or its nearest ancestor that exists. */
export function nearest(path: string, placeAt: HostFacts['placeOf'] = placeOf): string {
  return path === '/' || placeAt(path) ? path : nearest(dirname(path), placeAt);
}

/** access(2) reports EROFS before any other reason. */
function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (error) {
    return systemCodeOf(error) === 'EROFS';
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // missing, or not executable for us: to a start, both are the same
  }
}
