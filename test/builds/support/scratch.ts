import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder for one test, removed afterwards. */
export function scratch(): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'atoll-builds-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
