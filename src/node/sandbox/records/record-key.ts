import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isGone } from '../../../base/error.ts';

const keyBytes = 32;

/** `isNew`: the host has restarted since records were sealed with another key. */
export type RecordKey = { key: Uint8Array; isNew: boolean };

/** The key that seals records, kept in memory (`runDir` is on no disk), so that a copy of the disk can't open them. */
export function recordKey(runDir: string): RecordKey {
  const path = join(runDir, 'record-key');
  try {
    const key = readFileSync(path);
    if (key.length === keyBytes) return { key, isNew: false };
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  const key = randomBytes(keyBytes);
  // A start that is killed leaves either no key or a whole one.
  writeFileSync(`${path}.new`, key, { mode: 0o600 });
  renameSync(`${path}.new`, path);
  return { key, isNew: true };
}
