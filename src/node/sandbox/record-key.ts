import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const keyBytes = 32;

/** The key that seals records, kept in memory (`runDir` is on no disk): a copy of the disk can't open them. */
export function recordKey(runDir: string): Uint8Array {
  const path = join(runDir, 'record-key');
  if (existsSync(path)) return readFileSync(path);
  const key = randomBytes(keyBytes);
  writeFileSync(path, key, { mode: 0o600 });
  return key;
}
