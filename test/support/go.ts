import { existsSync } from 'node:fs';

/** The Go compiler, with which tests build programs of others; null where there is none. */
export function goProgram(): string | null {
  return Bun.which('go') ?? (existsSync('/usr/local/go/bin/go') ? '/usr/local/go/bin/go' : null);
}
