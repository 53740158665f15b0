import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Builds `NAME.c` of this folder, for a sandbox that has no compiler: the program in base64. */
export function buildProgram(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `atoll-${name}-`));
  try {
    const file = join(folder, name);
    const source = join(import.meta.dirname, `${name}.c`);
    execFileSync('gcc', ['-O2', '-s', '-Wall', '-Wextra', '-Werror', '-o', file, source]);
    return readFileSync(file).toString('base64');
  } finally {
    rmSync(folder, { recursive: true });
  }
}
