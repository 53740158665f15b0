import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../base/error.ts';
import { findCriu, type Criu } from './criu.ts';
import { parseJson } from '../../base/json-text.ts';
import { readIfThere } from '../../base/small-file.ts';

/** Why all memory has to be back before a sandbox runs; null: it may come while it runs. */
export type Later = { notLater: string | null };

/** Whether this host can keep the memory of sandboxes, and if not, why: for `atoll doctor` and for callers. */
type MemoryKeeping = ({ possible: true; criu: Criu } & Later) | { possible: false; reason: string };

/**
 * Finds out by doing it, once for each boot of the host, kernel and CRIU. `test` checkpoints a sandbox and restores
 * it; its error is the reason. `cacheFile` keeps the answer for the next start of the platform.
 */
export async function findMemoryKeeping(options: {
  criuDir: string;
  cacheFile: string;
  test(criu: Criu): Promise<Later>;
}): Promise<MemoryKeeping> {
  let criu: Criu;
  try {
    criu = findCriu(options.criuDir);
  } catch (error) {
    return { possible: false, reason: messageOf(error) };
  }
  const known = knownMemoryKeeping(criu, options.cacheFile);
  if (known) return known;
  const found = await options.test(criu).then(
    (later): MemoryKeeping => ({ possible: true, criu, ...later }),
    (error: unknown): MemoryKeeping => ({ possible: false, reason: messageOf(error) }),
  );
  writeFileSync(`${options.cacheFile}.new`, JSON.stringify({ key: keyOf(criu), found }));
  renameSync(`${options.cacheFile}.new`, options.cacheFile);
  return found;
}

/** What was found out since the host started, if anything was. */
export function knownMemoryKeeping(criu: Criu, cacheFile: string): MemoryKeeping | undefined {
  return readCache(cacheFile, keyOf(criu));
}

/** The file among a node's data that keeps what it has found out. */
export function memoryKeepingFile(data: string): string {
  return join(data, 'memory-keeping.json');
}

/** The form of an answer: one of an earlier release says less, and does not count. */
const form = 3;

function keyOf(criu: Criu): string {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return [form, boot, release(), criu.version, ...criu.argv].join(' ');
}

function readCache(file: string, key: string): MemoryKeeping | undefined {
  const cached = parseJson(readIfThere(file) ?? '') as { key: string; found: MemoryKeeping } | null | undefined;
  return cached?.key === key ? cached.found : undefined;
}
