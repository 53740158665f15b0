import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError, systemCodeOf } from '../base/error.ts';
import { newUuid } from '../base/id.ts';
import { randomHex } from '../base/secret.ts';

const seedBytes = 32;

/** What an installation keeps for its whole life. */
export type Identity = {
  nodeId: string;
  /** The sandboxes' tokens are derived from it: whoever has it can enter every sandbox. */
  seed: Uint8Array;
  /** What an operator sends as `X-Admin-Token`. */
  adminToken: string;
  /** What reads the operator's metrics and nothing else. */
  metricsToken: string;
};

/** Reads the installation's identity, making it at the first start. */
export function readIdentity(dataDir: string): Identity {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const nodeId = readOrMake(join(dataDir, 'node-id'), () => newUuid());
  const seed = Buffer.from(readOrMake(join(dataDir, 'seed'), () => randomBytes(seedBytes).toString('hex')), 'hex');
  if (seed.length !== seedBytes) {
    throw new AtollError('internal', `${join(dataDir, 'seed')} is damaged: it must hold ${seedBytes * 2} hex digits. Restore it from a backup; without it every sandbox's tokens change.`);
  }
  const token = (name: string) => readOrMake(join(dataDir, name), () => randomHex(seedBytes));
  return { nodeId, seed, adminToken: token('admin-token'), metricsToken: token('metrics-token') };
}

/**
 * A small secret file of the data directory, read, or made by `make` where it is missing. It appears whole or not at all,
 * and only root can read it.
 */
export function readOrMake(path: string, make: () => string): string {
  const known = readIfThere(path);
  if (known !== undefined) return known;
  const text = make();
  const temporary = `${path}.${process.pid}`;
  const fd = openSync(temporary, 'wx', 0o600);
  try {
    writeSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  try {
    // Unlike a rename, a link never replaces what somebody else has just made.
    linkSync(temporary, path);
    return text;
  } catch (error) {
    const made = readIfThere(path);
    if (made === undefined) throw error;
    return made;
  } finally {
    rmSync(temporary);
  }
}

export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    // ESRCH: of a process that ends while it is read.
    if (['ENOENT', 'ESRCH'].includes(systemCodeOf(error))) return undefined;
    throw error;
  }
}
