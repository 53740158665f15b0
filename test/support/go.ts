import { existsSync } from 'node:fs';

/** The Go compiler, with which tests build other projects' programs; null if there is none. */
export function goProgram(): string | null {
  return Bun.which('go') ?? (existsSync('/usr/local/go/bin/go') ? '/usr/local/go/bin/go' : null);
}
